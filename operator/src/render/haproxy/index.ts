/** haproxy.cfg of one pod, section by section. HAProxy 3.0. */
import { given, MADE_BY_CORELANE, paragraphs, text, when } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { otherRevisions } from './assets.ts';
import { cacheStages } from './cache.ts';
import { otherSide } from './canary.ts';
import { workersAlive, workersGuarded, workersUp } from './checks.ts';
import { classBackends } from './classes.ts';
import { clients } from './clients.ts';
import { timedStage } from './deadlines.ts';
import { defaults } from './defaults.ts';
import { slots, workers } from './dispatch.ts';
import { entrance } from './entrance.ts';
import { global } from './global.ts';
import { health } from './health.ts';
import { ownSiteBackends } from './own-site.ts';
import { elsewhere, late, peersEntrance, peersList, RESOLVERS } from './peers.ts';
import { refusedBackends } from './priority.ts';
import { PURGES } from './purge.ts';
import { quarantineBackends } from './quarantine.ts';
import { queue } from './queue.ts';
import { STATS_PAGE, statistics, wholePages, workerRuntimes } from './statistics.ts';
import { waitingRoom } from './waiting-room.ts';

/**
 * The whole haproxy.cfg.
 * @throws RangeError when a value of the model cannot stand in the file.
 */
export function renderHaproxy(model: DataPlaneModel): string {
  const { cache, classes, deadlines, isSupervised, ownSite, pooling, priority, quarantine } = model;
  return text(
    paragraphs(
      [MADE_BY_CORELANE, global(model)],
      defaults(model),
      given(deadlines, (deadlines) => timedStage(deadlines, model)),
      given(cache, (cache) => cacheStages(cache, model)),
      given(cache, () => PURGES),
      entrance(model),
      queue(model),
      slots(model),
      workers(model),
      waitingRoom(model),
      given(classes, (classes) => classBackends(classes, model)),
      given(ownSite, (ownSite) => ownSiteBackends(ownSite, model)),
      workersUp(model),
      when(isSupervised, workersAlive(model)),
      when(isSupervised, workersGuarded(model)),
      when(isSupervised, clients(model)),
      given(quarantine, quarantineBackends),
      given(priority, refusedBackends),
      given(pooling, () => RESOLVERS),
      given(pooling, (pooling) => peersList(pooling, model)),
      given(pooling, (pooling) => peersEntrance(pooling, model)),
      when(pooling?.handsOver, elsewhere(model)),
      when(pooling?.handsOver, late(model)),
      given(pooling, (pooling) => pooling.handsOver && otherSide(pooling, model)),
      otherRevisions(model),
      health(model),
      statistics(model),
      wholePages(model),
      STATS_PAGE,
      when(isSupervised, workerRuntimes(model)),
    ),
  );
}
