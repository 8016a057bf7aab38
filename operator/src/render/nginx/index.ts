/** nginx.conf of one pod: reads whole bodies, buffers responses, replays the request of a dead worker. nginx 1.26. */
import { block, given, paragraphs, text, when } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { assetMaps, LATE_ASSETS_FORMAT, OTHER_REVISIONS, peersAssets } from './assets.ts';
import { CACHE_UPSTREAM, cacheMaps, pagesServer } from './cache.ts';
import { servedAs } from './classes.ts';
import { clients } from './clients.ts';
import { compressed } from './compression.ts';
import { deadlineMaps } from './deadlines.ts';
import { browsers } from './fallback.ts';
import { figures } from './figures.ts';
import { HOSTS } from './hosts.ts';
import { http } from './http.ts';
import { limitZones } from './limits.ts';
import { logging } from './logging.ts';
import { events, main } from './main.ts';
import { classes } from './priority.ts';
import { proxy } from './proxy.ts';
import { server } from './server.ts';
import { traces } from './tracing.ts';
import { NEXT_UPSTREAM, TIMED_UPSTREAM, UPSTREAM } from './upstream.ts';
import { VARIABLES } from './variables.ts';
import { VISITORS } from './visitors.ts';

/** Else nginx warns, each time that it starts, that its table of variables is not the best. */
const MANY_VARIABLES = ['variables_hash_max_size 4096;', 'variables_hash_bucket_size 128;'];

/**
 * The whole nginx.conf.
 * @throws RangeError when a value of the model cannot stand in the file.
 */
export function renderNginx(model: DataPlaneModel): string {
  const sections = [
    http(model),
    given(model.compression, compressed),
    VARIABLES,
    clients(model),
    traces(model),
    HOSTS,
    MANY_VARIABLES,
    when(model.looksAtVisitors, VISITORS),
    given(model.fallback, browsers),
    given(model.priority, classes),
    given(model.classes, servedAs),
    given(model.deadlines, deadlineMaps),
    limitZones(model),
    NEXT_UPSTREAM,
    logging(model),
    when(model.assets !== undefined || model.cache !== undefined, LATE_ASSETS_FORMAT),
    given(model.assets, assetMaps),
    given(model.cache, (cache) => cacheMaps(cache, model)),
    UPSTREAM,
    given(model.deadlines, () => TIMED_UPSTREAM),
    given(model.cache, () => CACHE_UPSTREAM),
    when(model.assets?.asksOtherRevisions, OTHER_REVISIONS),
    proxy(model),
    server(model),
    figures(model),
    given(model.cache, (cache) => when(cache.isShared, pagesServer(cache, model))),
    given(model.assets, (assets) => when(assets.asksOtherRevisions, peersAssets(assets))),
  ];
  return text(paragraphs(main(model), events(model), block('http', paragraphs(...sections))));
}
