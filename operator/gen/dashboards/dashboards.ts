/** The dashboards that Corelane ships, as files of the chart. */
import type { Dashboard } from './board.ts';
import { FLEET } from './fleet.ts';
import { grafanaDashboard } from './grafana.ts';
import { OPERATOR } from './operator.ts';
import { SERVICE } from './service.ts';

export const DASHBOARDS: readonly Dashboard[] = [SERVICE, FLEET, OPERATOR];

/** By path in the repository. */
export function dashboardFiles(): Record<string, string> {
  return Object.fromEntries(
    DASHBOARDS.map((dashboard) => [
      `charts/corelane/files/dashboards/${dashboard.uid}.json`,
      `${JSON.stringify(grafanaDashboard(dashboard), null, 1)}\n`,
    ]),
  );
}
