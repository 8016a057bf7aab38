/**
 * A rollout: files of the other revision for many at once, in a larger fleet, and by pods that do not answer. A load
 * test: a question to a peer has less than a second, and the fleets are many.
 */
import { AppFiles } from '../../e2e/harness/engine/app-files.ts';
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { NEW, newFiles, OLD, oldFiles, SPEC } from './assets-revisions.ts';

afterAll(() => {
  oldFiles.remove();
  newFiles.remove();
});

test('many at once wait for each other, and take no slot', async () => {
  const fleet = await Fleet.start(0, SPEC);
  try {
    await fleet.add(SPEC, { options: oldFiles.options, revision: OLD });
    const newer = await fleet.add(SPEC, { options: newFiles.options, revision: NEW });
    await fleet.untilAllKnown();
    await until('it is there', async () => (await newer.get('/_next/static/old.js')).body === 'old');
    const begun = () => fleet.pods.reduce((sum, pod) => sum + pod.events({ event: 'begin' }).length, 0);
    const before = begun();
    const answers = await Promise.all(
      Array.from({ length: 200 }, () => newer.get('/_next/static/old.js').then(({ status }) => status)),
    );
    expect(new Set(answers)).toEqual(new Set([200]));
    expect(begun()).toBe(before);
  } finally {
    await fleet.stop();
  }
});

test('several pods that say nothing any more do not hide the one that has the file', async () => {
  const rounds = [0, 1, 2];
  const found: string[] = [];
  const restingFiles = new AppFiles({ 'static/resting.js': 'resting' });
  const roundFiles = new AppFiles({
    'static/known.js': 'known',
    ...Object.fromEntries(rounds.map((round) => [`static/round-${round}.js`, 'old'])),
  });
  const many = await Fleet.start(0, SPEC);
  try {
    const add = (revision: string, files: AppFiles) => many.add(SPEC, { options: files.options, revision });
    const [resting, older] = [await add('0a00000000', restingFiles), await add('0b00000000', newFiles)];
    const [dying] = [await add(OLD, roundFiles), await add(OLD, roundFiles)];
    const pod = await add(NEW, newFiles);
    await many.untilAllKnown();
    const file = async (name: string) => (await pod.get(`/_next/static/${name}.js`)).body;
    for (const round of rounds) {
      // The revision that had the last file is asked first.
      await until('it knows them all', async () => {
        const { body } = await pod.get('/corelane/metrics', { port: PORTS.stats });
        if (!/^corelane_peers_known 4$/m.test(body)) return false;
        return (await file('known')) === 'known' && (await file('resting')) === 'resting';
      });
      await Promise.all([resting, older, dying].map(({ haproxy }) => many.engine.run('pause', haproxy)));
      try {
        found.push(await file(`round-${round}`));
      } finally {
        await Promise.all([resting, older, dying].map(({ haproxy }) => many.engine.run('unpause', haproxy)));
      }
    }
    const right = found.filter((body) => body === 'old').length;
    figure('files found while three of four other pods do not answer', right, `of ${rounds.length}`, '>= 2');
    // The one that is left may be short of CPU for a moment, too.
    expect(right).toBeGreaterThanOrEqual(2);
  } finally {
    await many.stop();
    restingFiles.remove();
    roundFiles.remove();
  }
});

test.each([404, 420, 500, 503])('a pod of another revision that answers %d is no answer', async (status) => {
  const two = await Fleet.start(0, SPEC);
  try {
    // 420 is what nginx says to itself when it has no place left.
    const edit = (_file: string, text: string) => text.replaceAll('$corelane_file =404;', `/none =${status};`);
    const other = await two.add(SPEC, { options: oldFiles.options, revision: OLD, edit });
    const pod = await two.add(SPEC, { options: newFiles.options, revision: NEW });
    await two.untilAllKnown();
    const asked = 'haproxy_server_sessions_total{proxy="has-file",server="nginx"}';
    await until('the other one was asked', async () => {
      const { status, body } = await pod.get('/_next/static/old.js');
      expect([status, JSON.parse(body).method]).toEqual([200, 'GET']);
      return (await other.metric(asked)) > 0;
    });
  } finally {
    await two.stop();
  }
});
