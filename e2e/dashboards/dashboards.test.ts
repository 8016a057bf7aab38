/**
 * Every query of the dashboards, asked of a real Prometheus that has seen a real fleet and its operator through a bad
 * day: each gives data, or stands in a list of those that must give none. The answers are drawn, for the docs.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dashboardFiles } from '../../operator/gen/dashboards/dashboards.ts';
import { liveThrough, type Mark } from './day.ts';
import { pictureOf } from './pictures.ts';
import { type Answer, answer, asked, type Board, faultOf, nameOf, type Question, questionsOf } from './queries.ts';
import { NAME, NAMESPACE, REFUSED, Shop, TIMES } from './shop.ts';

const RESULTS = '.state/dashboards';
/** What somebody has chosen at the head of each. */
const SHOP = { namespace: NAMESPACE, renderservice: NAME, __rate_interval: '10s' };
const CHOSEN: Record<string, Record<string, string>> = {
  'corelane-service': SHOP,
  'corelane-fleet': { ...SHOP, namespace: '.*' },
  'corelane-operator': { ...SHOP, operator: 'corelane', job: 'corelane' },
};

/** Panels without data here, with why. One that has some is out of place in the list. */
const MUST_BE_EMPTY: Record<string, string> = {
  'corelane-service: Throttled by a CPU limit: {{pod}} {{container}}':
    'cAdvisor is part of kubelet, and none runs here',
};

const boards = Object.values(dashboardFiles()).map((text) => JSON.parse(text) as Board);
const questions = boards.flatMap(questionsOf);
const answers = new Map<string, Answer>();
let shop: Shop | undefined;
let marks: Mark[] = [];

const ask = (question: Question, span: [number, number]) =>
  answer((shop as Shop).prometheus, question, asked(question.text, CHOSEN[question.uid] ?? {}, TIMES), span);
/** From the first mark to now. */
const wholeDay = (): [number, number] => [Math.floor(marks[0]?.atS ?? 0), Math.floor(Date.now() / 1000)];

beforeAll(async () => {
  shop = await Shop.start();
  marks = await liveThrough(shop);
  const span = wholeDay();
  for (const question of questions) answers.set(nameOf(question), await ask(question, span));
  mkdirSync(RESULTS, { recursive: true });
  const all = [...answers.values()];
  writeFileSync(join(RESULTS, 'answers.json'), JSON.stringify({ boards, span, marks, answers: all }));
  for (const board of boards) {
    const drawn = pictureOf(board, all, span, marks);
    writeFileSync(join(RESULTS, `${board.uid}.svg`), drawn);
    if (process.env.UPDATE_PICTURES) writeFileSync(`docs/dashboard-${board.uid.replace('corelane-', '')}.svg`, drawn);
  }
}, 900_000);

afterAll(async () => {
  await shop?.stop();
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(join(RESULTS, 'line'), `${lineOf()}\n`);
});

/** What the run comes to, in one line. What was not asked has failed. */
function lineOf(): string {
  const faults = questions.map(nameOf).map((name) => {
    const given = answers.get(name);
    return given ? faultOf(given, MUST_BE_EMPTY[name]) : 'failed';
  });
  const panels = boards.flatMap(({ panels: all }) => all).filter(({ targets }) => targets).length;
  const variables = questions.filter(({ what }) => what === 'variable').length;
  const empty = faults.filter((fault) => fault === 'empty').length;
  const failed = faults.filter((fault) => fault === 'failed' || fault === 'unexpected').length;
  return `dashboards: panels=${panels} variables=${variables} empty=${empty} failed=${failed}`;
}

test('no two queries have the same name', () => {
  expect(new Set(questions.map(nameOf)).size).toBe(questions.length);
});

test.each(questions.map((question) => [nameOf(question)]))('%s', (name) => {
  const given = answers.get(name) as Answer;
  expect([faultOf(given, MUST_BE_EMPTY[name]), given.error]).toEqual([undefined, undefined]);
});

test('what must be empty is a query that there is, and has a reason', () => {
  for (const [name, reason] of Object.entries(MUST_BE_EMPTY)) {
    expect(questions.map(nameOf)).toContain(name);
    expect(reason).not.toBe('');
  }
});

test('a query that nothing answers is seen, and so is one that is wrong, or listed in vain', async () => {
  const question = (text: string): Question => ({ ...(questions.at(-1) as Question), what: 'panel', text });
  const faults = async (text: string, reason?: string) => faultOf(await ask(question(text), wholeDay()), reason);
  expect(await faults('corelane_queue_length{renderservice="$renderservice"}')).toBeUndefined();
  expect(await faults('corelane_queue_length{renderservice="another"}')).toBe('empty');
  expect(await faults('sum by (corelane_queue_length')).toBe('failed');
  expect(await faults('corelane_queue_length', 'nobody waits')).toBe('unexpected');
  expect(await faults('0 / (corelane_queue_length * 0)')).toBe('empty');
});

test('what could be chosen is what was asked for', () => {
  const values = (name: string) => (answers.get(name) as Answer).series.flatMap(({ labels }) => Object.values(labels));
  expect(values('corelane-service: namespace: variable')).toEqual([NAMESPACE]);
  expect(values('corelane-service: renderservice: variable')).toEqual([NAME]);
  expect(values('corelane-fleet: namespace: variable')).toEqual([NAMESPACE]);
  expect(values('corelane-operator: operator: variable')).toEqual(['corelane']);
  expect(values('corelane-operator: job: variable')).toEqual(['corelane']);
});

/** Labels of the series of a panel, and the highest value of each. */
function seenIn(uid: string, title: string, legend?: string): { labels: Record<string, string>; most: number }[] {
  const found = [...answers.values()].filter(
    ({ question }) => question.uid === uid && question.title === title && (!legend || question.legend === legend),
  );
  return found.flatMap(({ series }) =>
    series.map(({ labels, points }) => ({ labels, most: Math.max(...points.map(([, value]) => value)) })),
  );
}

/** Highest value of a panel of the first dashboard while something went on. */
function highest(title: string, legend: string, when: string): number {
  const from = marks.findIndex(({ what }) => what === when);
  const isThen = (atS: number) => atS >= (marks[from]?.atS ?? 0) && atS < (marks[from + 1]?.atS ?? 0);
  const { series } = answers.get(`corelane-service: ${title}: ${legend}`) as Answer;
  return Math.max(...series.flatMap(({ points }) => points.filter(([atS]) => isThen(atS)).map(([, value]) => value)));
}

describe('each of the faults is seen where it belongs', () => {
  const service = 'corelane-service';
  const values = (title: string, label: string, uid = service) => seenIn(uid, title).map(({ labels }) => labels[label]);

  test('heavy pages: in the time of renders, and in the CPU of each', () => {
    // Each takes 250 ms at least.
    expect(highest('Time of renders', 'p99 {{revision}}', 'pages become heavy')).toBeGreaterThan(0.25);
    const cpu = (when: string) => highest('CPU for a render', '{{revision}}', when);
    expect(cpu('pages become heavy')).toBeGreaterThan(1.5 * cpu('all is well'));
  });

  test('a crowd: in the queue, in what is refused, and in what scaling did', () => {
    expect(Math.max(...seenIn(service, 'Time in the queue').map(({ most }) => most))).toBeGreaterThan(0.5);
    expect(values('Refused: there was no room', 'reason')).toContain('queue-full');
    expect(values('Decisions so far', 'direction')).toContain('up');
  });

  test('failures: by reason, and those of the program', () => {
    expect(seenIn(service, 'What fails, and why', 'application')).not.toEqual([]);
    expect(values('What fails, and why', 'reason')).toEqual(expect.arrayContaining(['queue-full', 'worker-stuck']));
  });

  test('stuck renders and dead workers: with function, file and line; by reason', () => {
    expect(values('Where renders got stuck', 'in').join()).toMatch(/render.*worker\.mjs/);
    expect(values('Restarts by reason', 'reason')).toEqual(expect.arrayContaining(['signal', 'stalled']));
  });

  test('a rollout: two revisions, also in the time of renders', () => {
    for (const title of ['Pods by revision', 'Time of renders'])
      expect([title, new Set(values(title, 'revision')).size]).toEqual([title, 2]);
  });

  test('an API server that is away: calls without an answer, watches that failed', () => {
    expect(values('Calls by code', 'code', 'corelane-operator')).toContain('0');
    expect(seenIn('corelane-operator', 'Watches that failed').some(({ most }) => most > 0)).toBe(true);
  });

  test('a pod that is gone, and a RenderService that is refused', () => {
    const fleet = 'corelane-fleet';
    expect(seenIn(fleet, 'Pods that are not scraped').map(({ labels }) => labels.renderservice)).toEqual([NAME]);
    const stalled = seenIn(fleet, 'What does not hold').filter(({ labels }) => labels.type === 'Stalled');
    expect(stalled.map(({ labels }) => [labels.renderservice, labels.reason])).toContainEqual([REFUSED, 'NotOwned']);
  });
});

test.each(boards.map((board) => [board.uid, board] as const))(
  '%s as a picture has all panels, in numbers',
  (_uid, board) => {
    const drawn = pictureOf(board, [...answers.values()], wholeDay(), marks);
    expect(drawn).not.toMatch(/NaN|undefined|Infinity/);
    expect(drawn.match(/<path /g)?.length).toBeGreaterThan(10);
  },
);

test('the files are those of the chart', () => {
  for (const [file, text] of Object.entries(dashboardFiles())) expect(readFileSync(file, 'utf8')).toBe(text);
});
