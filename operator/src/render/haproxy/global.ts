/** Section `global`: limits of the process, and the Lua that it loads. */
import {
  ANNOTATION_DEPLOYMENT,
  CANARY_FILE,
  LIVE_FILE,
  LIVE_MOUNT_PATH,
  PEERS_KEY,
  PEERS_KEY_MOUNT_PATH,
  RUN_MOUNT_PATH,
} from '../../api/names.ts';
import { given, type Lines, section } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import type { Pooling } from '../model/pooling.ts';
import type { Quarantine } from '../model/quarantine.ts';
import { ms, whole, word } from '../safe.ts';
import { CACHE_ENTRANCES, cacheSettings } from './cache.ts';
import { classBackend } from './classes.ts';
import { TIMED_ENTRANCE } from './deadlines.ts';

/** Of the pod, as HAProxy finds it in its environment. */
const REVISION = `"\${CORELANE_REVISION}"`;

/**
 * Of a response: of a request nginx takes fewer. HAProxy keeps four bytes more for each than boundsHead counts. So many
 * still fit into the next stage's buffer, beside the largest head and what is added to it.
 */
const HEADERS_MAX = 512;

/** The key of the RenderService, as the pod mounts it. */
const PEERS_KEY_FILE = `${PEERS_KEY_MOUNT_PATH}/${PEERS_KEY}`;

/** The section, with one `lua-load` per file: what a pod does not do is not loaded. */
export function global(model: DataPlaneModel): Lines {
  const { cache, deadlines, drain, heads, limits, ownSite, pooling, ports, quarantine, queue, timeouts } = model;
  return section(
    'global',
    '# One thread: before 3.2 maxconn is not strict across threads. Plenty for the workers of one pod.',
    'nbthread 1',
    '# HAProxy derives its maxconn (half of this) by itself; where the container may open fewer files it takes those, while',
    '# a fixed maxconn would keep it from starting. Without a bound it would fill memory where the limit is 10^9.',
    `fd-hard-limit ${whole(limits.haproxyFiles, 'open files')}`,
    `hard-stop-after ${ms(drain.timeoutMs, 'drain.timeout')}`,
    '# A head must fit into a buffer. The second line bounds the memory of all buffers: what needs one more waits.',
    `tune.bufsize ${whole(heads.bufferBytes, 'buffer')}`,
    `tune.buffers.limit ${whole(limits.haproxyBuffers, 'buffers')}`,
    '# Far more than any program sends: the bytes of a head bound it.',
    `tune.http.maxhdr ${whole(HEADERS_MAX, 'headers')}`,
    '# With SO_REUSEPORT a program of the same user could listen beside HAProxy, and get a part of the connections.',
    'noreuseport',
    'log stdout format raw daemon notice',
    `stats socket ${RUN_MOUNT_PATH}/haproxy.sock mode 600 level admin`,
    '# The entry point sets it: addresses from which kubelet may come.',
    'presetenv CORELANE_NODE 127.0.0.1',
    given(deadlines, () => TIMED_ENTRANCE),
    given(cache, () => CACHE_ENTRANCES),
    'lua-prepend-path /usr/share/corelane/haproxy/?.lua',
    lua('live-settings', [
      `file=${LIVE_MOUNT_PATH}/${LIVE_FILE}`,
      `canary-file=${LIVE_MOUNT_PATH}/${CANARY_FILE}`,
      // What nginx and kubelet of this pod wait for, whatever newer ones do.
      `worker-ms-max=${whole(timeouts.workerMs, 'timeouts.render')}`,
      `worker-after-waiting-ms-max=${whole(timeouts.workerAfterWaitingMs, 'timeouts.render')}`,
      `drain-timeout-ms-max=${whole(drain.timeoutMs, 'drain.timeout')}`,
    ]),
    'presetenv CORELANE_REVISION none',
    lua('corelane', [
      `revision=${REVISION}`,
      `workers=${whole(model.workers.length, 'workersPerPod')}`,
      `first-port=${whole(model.firstRuntimePort, 'runtime port')}`,
      `drain-delay-ms=${whole(drain.delayMs, 'drain.delay')}`,
      `queue-timeout-ms=${whole(queue.timeoutMs, 'queue.timeout')}`,
      `without-slot-max=${whole(limits.withoutSlot, 'requests without a slot')}`,
    ]),
    lua('second-tries', [`places=${whole(model.rememberedMax, 'notes')}`]),
    given(cache, (cache) => lua('cache', cacheSettings(cache, model))),
    given(cache, () => lua('purge', [`nginx-port=${whole(ports.figures, 'port')}`])),
    given(pooling, (pooling) => asksPeers(pooling, model)),
    given(ownSite, ({ lifeSeconds, pools }) =>
      lua('own-site', [`depth=${pools.length}`, `life-s=${whole(lifeSeconds, 'timeouts.handler')}`]),
    ),
    lua('pod-metrics', [
      `workers=${whole(model.workers.length, 'workersPerPod')}`,
      `nginx-port=${whole(ports.figures, 'port')}`,
      `hand-over=${pooling?.handsOver ? 1 : 0}`,
    ]),
    given(model.classes, (classes) =>
      lua(
        'classes',
        classes.flatMap((one) => [
          classBackend(one),
          whole(one.queue.timeoutMs, 'classes.queue.timeout'),
          whole(one.drainMs, 'classes.timeouts.drain'),
        ]),
      ),
    ),
    given(quarantine, (quarantine) => quarantineLua(quarantine, model)),
    lua('moving-limits'),
    '# How Lua asks others: a dead one costs no more than this, once.',
    'httpclient.timeout.connect 200ms',
    'httpclient.retries 0',
    'httpclient.resolvers.disabled on',
  );
}

function lua(file: string, settings: string[] = []): string {
  return [`lua-load /usr/share/corelane/haproxy/${file}.lua`, ...settings].join(' ');
}

function asksPeers(pooling: Pooling, { assets, body, cache, deployment, heads, ports }: DataPlaneModel): Lines {
  const [looksForAssets, sharesPages] = [assets?.asksOtherRevisions, cache?.isShared];
  const revision = REVISION;
  return [
    '# The entry point and the pod set these; the defaults let the file be checked elsewhere.',
    'presetenv CORELANE_NAMESERVER 127.0.0.1',
    'presetenv CORELANE_PEERS peers.invalid',
    lua('peer-key', [`file=${PEERS_KEY_FILE}`, `overlap-ms=${whole(pooling.keyOverlapMs, 'overlap of keys')}`]),
    lua('pooling', [
      `port=${whole(ports.peers, 'port')}`,
      `hand-over=${pooling.handsOver ? 1 : 0}`,
      `body-max=${whole(body.sizeBytesMax, 'buffering.request.maxSize')}`,
      // Pages that nginx keeps would be of either side, for both, and live on after an abort.
      `canary=${cache ? 0 : 1}`,
      `revision=${revision}`,
      `deployment=${deployment === undefined ? revision : word(deployment, ANNOTATION_DEPLOYMENT)}`,
      // The same for old and new pods of this RenderService, if they take the same heads.
      `any-revision="any-\${CORELANE_PEERS}-${whole(heads.bytesMax, 'buffering.maxHeaderSize')}"`,
      // Of this pod, whatever is handed over across revisions.
      ...(looksForAssets ? [`own-revision=${revision}`] : []),
      ...(sharesPages ? [`pages-of=${revision}`] : []),
      ...(cache ? ['purges=1'] : []),
    ]),
  ];
}

function quarantineLua(quarantine: Quarantine, { queue }: DataPlaneModel): string {
  return lua('quarantine', [
    `kills=${whole(quarantine.killsMin, 'watchdog.quarantine.kills')}`,
    `window-ms=${whole(quarantine.windowMs, 'watchdog.quarantine.window')}`,
    `duration-ms=${whole(quarantine.durationMs, 'watchdog.quarantine.duration')}`,
    `held-ms-max=${whole(queue.timeoutMs, 'queue.timeout')}`,
  ]);
}
