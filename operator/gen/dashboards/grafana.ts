/** A dashboard as Grafana's JSON: panels get their places and numbers here. */
import type { Annotation, Dashboard, Panel, QueriedPanel, Query, Variable } from './board.ts';

/** That of Grafana 10.3, which later versions read as well. */
const SCHEMA_VERSION = 39;
const COLUMNS = 24;
const HEIGHTS = { lines: 7, figure: 4, table: 8 };
const DATASOURCE = { type: 'prometheus', uid: '$datasource' };
const REFS = 'ABCDEFGH';

interface Place {
  x: number;
  y: number;
  w: number;
  h: number;
}

const heightOf = (panel: Panel) => (panel.kind === 'words' ? panel.height : HEIGHTS[panel.kind]);

/** Each as high up as it fits, and as far to the left: figures stand in lines beside a tall panel. */
function placed(panels: Panel[], top: number): { places: Place[]; bottom: number } {
  const floor = Array.from({ length: COLUMNS }, () => top);
  const places = panels.map((panel) => {
    const [w, h] = [panel.width, heightOf(panel)];
    const below = (x: number) => Math.max(...floor.slice(x, x + w));
    const columns = Array.from({ length: COLUMNS - w + 1 }, (_unused, x) => x);
    const y = Math.min(...columns.map(below));
    const x = columns.find((column) => below(column) === y) as number;
    floor.fill(y + h, x, x + w);
    return { x, y, w, h };
  });
  return { places, bottom: Math.max(...floor) };
}

function target(panel: QueriedPanel, { expr, legend }: Query, index: number) {
  const isTable = panel.kind === 'table';
  const isNow = isTable || panel.kind === 'figure';
  return {
    refId: REFS[index],
    datasource: DATASOURCE,
    editorMode: 'code',
    expr,
    legendFormat: legend,
    format: isTable ? 'table' : 'time_series',
    range: !isNow,
    instant: isNow,
  };
}

/** What tables are of: the queries' answers side by side, labels first. */
function transformations({ queries, labels }: Extract<QueriedPanel, { kind: 'table' }>) {
  const valueColumn = (index: number) => (queries.length === 1 ? 'Value' : `Value #${REFS[index]}`);
  const names = [...labels, ...queries.map((_query, index) => valueColumn(index))];
  return [
    { id: 'merge', options: {} },
    {
      id: 'organize',
      options: {
        excludeByName: { Time: true, __name__: true },
        indexByName: Object.fromEntries(names.map((name, index) => [name, index])),
        renameByName: Object.fromEntries(queries.map(({ legend }, index) => [valueColumn(index), legend])),
      },
    },
  ];
}

function overrides(panel: Extract<QueriedPanel, { kind: 'table' }>) {
  const ofUnits = panel.queries
    .filter(({ unit }) => unit)
    .map(({ legend, unit }) => ({
      matcher: { id: 'byName', options: legend },
      properties: [{ id: 'unit', value: unit }],
    }));
  const ofLink = panel.link
    ? [
        {
          matcher: { id: 'byName', options: panel.labels.at(-1) },
          properties: [{ id: 'links', value: [{ title: panel.link.title, url: panel.link.url }] }],
        },
      ]
    : [];
  return [...ofUnits, ...ofLink];
}

function looks(panel: QueriedPanel): object {
  const { unit, max, none = 'none' } = panel;
  const defaults = { unit, ...(max === undefined ? {} : { max }), noValue: none };
  const calm = { mode: 'absolute', steps: [{ color: 'text', value: null }] };
  if (panel.kind === 'table') {
    return {
      fieldConfig: {
        defaults: { ...defaults, custom: { align: 'auto', filterable: true } },
        overrides: overrides(panel),
      },
      options: { showHeader: true, cellHeight: 'sm', footer: { show: false } },
      transformations: transformations(panel),
    };
  }
  if (panel.kind === 'figure') {
    return {
      fieldConfig: { defaults: { ...defaults, color: { mode: 'thresholds' }, thresholds: calm }, overrides: [] },
      options: {
        colorMode: 'value',
        graphMode: 'none',
        justifyMode: 'auto',
        orientation: 'auto',
        textMode: panel.queries.length > 1 ? 'value_and_name' : 'auto',
        reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
      },
    };
  }
  const { stacked = false } = panel;
  return {
    fieldConfig: {
      defaults: {
        ...defaults,
        min: 0,
        color: { mode: 'palette-classic' },
        custom: {
          drawStyle: 'line',
          lineWidth: 1,
          fillOpacity: stacked ? 40 : 5,
          showPoints: 'never',
          spanNulls: false,
          stacking: { mode: stacked ? 'normal' : 'none', group: 'A' },
        },
      },
      overrides: [],
    },
    options: {
      legend: { displayMode: 'list', placement: 'bottom', showLegend: true },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
  };
}

const TYPES = { lines: 'timeseries', figure: 'stat', table: 'table' };

function grafanaPanel(panel: Panel, id: number, gridPos: Place): object {
  const { title } = panel;
  if (panel.kind === 'words') {
    const options = { mode: 'markdown', content: panel.text };
    return { id, type: 'text', title, transparent: true, gridPos, options };
  }
  return {
    id,
    type: TYPES[panel.kind],
    title,
    description: panel.says,
    datasource: DATASOURCE,
    gridPos,
    ...looks(panel),
    targets: panel.queries.map((query, index) => target(panel, query, index)),
  };
}

function panelsOf({ rows }: Dashboard): object[] {
  const panels: object[] = [];
  let y = 0;
  for (const { title, panels: inRow } of rows) {
    if (title !== undefined) {
      panels.push({
        ...{ id: panels.length + 1, type: 'row', title, collapsed: false },
        ...{ gridPos: { x: 0, y, w: COLUMNS, h: 1 }, panels: [] },
      });
      y += 1;
    }
    const { places, bottom } = placed(inRow, y);
    for (const [index, panel] of inRow.entries())
      panels.push(grafanaPanel(panel, panels.length + 1, places[index] as Place));
    y = bottom;
  }
  return panels;
}

const CHOICE_OF_PROMETHEUS = {
  name: 'datasource',
  label: 'Prometheus',
  type: 'datasource',
  query: 'prometheus',
  refresh: 1,
  hide: 0,
};

function choice({ name, label, query, several = false }: Variable) {
  return {
    name,
    label,
    type: 'query',
    datasource: DATASOURCE,
    definition: query,
    query: { query, refId: `Variable-${name}` },
    // Anew when the time range changes.
    refresh: 2,
    sort: 1,
    hide: 0,
    multi: several,
    includeAll: several,
    ...(several ? { allValue: '.*', current: { text: 'All', value: '$__all' } } : {}),
  };
}

function mark({ name, color, expr, title, tags }: Annotation) {
  return { name, enable: true, iconColor: color, datasource: DATASOURCE, expr, titleFormat: title, tagKeys: tags };
}

/** The file that Grafana reads. */
export function grafanaDashboard(dashboard: Dashboard) {
  const { uid, title, description, variables, annotations } = dashboard;
  return {
    uid,
    title,
    description,
    tags: ['corelane'],
    schemaVersion: SCHEMA_VERSION,
    version: 1,
    editable: true,
    // One crosshair for all panels: what happened at the same time is seen.
    graphTooltip: 1,
    refresh: '30s',
    time: { from: 'now-1h', to: 'now' },
    timezone: '',
    links: [
      {
        type: 'dashboards',
        tags: ['corelane'],
        title: 'Corelane',
        asDropdown: false,
        includeVars: true,
        keepTime: true,
      },
    ],
    templating: { list: [CHOICE_OF_PROMETHEUS, ...variables.map(choice)] },
    annotations: { list: annotations.map(mark) },
    panels: panelsOf(dashboard),
  };
}
