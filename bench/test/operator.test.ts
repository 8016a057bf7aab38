/** `make bench-operator`: what it applies, counts and says of it. */
import { AssertionError } from 'node:assert';
import { since, total, writesIn, writesText } from '../lib/writes.ts';
import { Arrivals, isDeploymentReady, isRenderServiceReady } from '../operator/arrivals.ts';
import type { Result } from '../operator/measure.ts';
import { plainObjects, renderServices } from '../operator/objects.ts';
import { bodyOf } from '../operator/pages.ts';
import { lastLine, markdown, type OperatorReport, picture } from '../operator/report.ts';
import { namespacesOf, parseShape, servicesOf, shapesOf, shapeText } from '../operator/shape.ts';
import { statisticsPage } from '../operator/statistics-page.ts';
import { storedService } from '../operator/stored.ts';
import { rowReader } from '../operator/table-watch.ts';
import { between } from '../operator/usage.ts';

describe('shapes', () => {
  test('services x pods / namespaces, one namespace unless given', () => {
    expect(parseShape('1000x10/20')).toEqual({ services: 1000, pods: 10, namespaces: 20 });
    expect(shapeText(parseShape('10x1000'))).toBe('10x1000/1');
  });

  test.each(['', '10', 'x10', '0x10', '10x10/0', '10x10/20x', '10x10/11', '10000x10'])('"%s" is none', (text) => {
    expect(() => parseShape(text)).toThrow('SHAPES: ');
  });

  test('single figures, a list, or what is said in the bench', () => {
    expect(shapesOf({ SERVICES: '5', PODS: '2' }, '1x1').map(shapeText)).toEqual(['5x2/1']);
    expect(shapesOf({ SHAPES: '5x2,3x1/3' }, '1x1').map(shapeText)).toEqual(['5x2/1', '3x1/3']);
    expect(shapesOf({ SHAPES: '' }, '1x1').map(shapeText)).toEqual(['1x1/1']);
  });

  test('names are unique in all namespaces, and each namespace has services', () => {
    const shape = parseShape('7x1/3');
    const services = servicesOf(shape);
    expect(new Set(services.map(({ name }) => name)).size).toBe(7);
    expect(new Set(services.map(({ namespace }) => namespace))).toEqual(new Set(namespacesOf(shape)));
    expect(services.filter(({ name }) => name.includes('-'))).toEqual([]);
  });
});

describe('what stands for a fleet', () => {
  test('a page of a pod is about as long as a real one, and tells of two workers that are up', () => {
    const page = statisticsPage();
    expect(page.split('\n').length).toBeGreaterThan(450);
    expect(page.length).toBeGreaterThan(28_000);
    for (const worker of ['worker-0', 'worker-1'])
      expect(page).toContain(`\nhaproxy_server_status{proxy="workers",server="${worker}",state="UP"} 1\n`);
  });

  test('objects of a service are as it asks for them, and their pods are its own', () => {
    const { renderService, owned, replicaSet, pod } = storedService({ name: 's1', namespace: 'b0' }, 3);
    const kinds = owned.map(({ kind }) => kind).toSorted();
    expect(new Set(kinds).size).toBe(5);
    for (const { metadata } of owned) expect(metadata.ownerReferences?.[0]?.uid).toBe(renderService.metadata.uid);
    const one = pod(1, '127.2.1.0');
    expect(one.metadata.ownerReferences?.[0]).toMatchObject({ kind: 'ReplicaSet', uid: replicaSet.metadata.uid });
    expect(one.metadata.uid).not.toBe(pod(2, '127.2.1.1').metadata.uid);
    expect(one.metadata.labels).toMatchObject({ 'corelane.dev/renderservice': 's1', 'corelane.dev/serving': 'true' });
    expect(JSON.stringify(one).length).toBeGreaterThan(12_000);
  });
});

describe('what is applied', () => {
  const shape = parseShape('2x3/2');
  type Applied = { kind: string; metadata: { name: string; namespace: string } & Record<string, unknown>; spec: Spec };
  type Spec = { replicas?: number; template: { spec: { nodeName: string; containers: { name: string }[] } } };
  const plain = plainObjects(shape) as Applied[];

  test('of each service the three kinds, without what only an operator has', () => {
    const kinds = plain.map(({ kind, metadata }) => `${metadata.namespace} ${kind}`).sort();
    expect(kinds).toEqual(
      ['b0', 'b1'].flatMap((name) => ['Deployment', 'PodDisruptionBudget', 'Service'].map((kind) => `${name} ${kind}`)),
    );
    for (const { metadata } of plain) expect(Object.keys(metadata)).toEqual(['name', 'namespace', 'labels']);
  });

  test('the pods are those of the operator, on the node that kwok plays', () => {
    const deployment = plain.find(({ kind }) => kind === 'Deployment');
    expect(deployment?.spec.replicas).toBe(3);
    expect(deployment?.spec.template.spec.nodeName).toBe('kwok-0');
    expect(deployment?.spec.template.spec.containers.map(({ name }) => name)).toEqual(['worker-0', 'worker-1']);
  });

  test('another version makes other pods', () => {
    expect(renderServices(shape, '2')).not.toEqual(renderServices(shape));
    expect(renderServices(shape, '2')).toHaveLength(2);
  });
});

describe('who is ready', () => {
  const deployment = { Name: 's0', Ready: '3/3', 'Up-to-date': 3, Available: 3 };
  const resource = { Name: 's0', Ready: 'True', Pods: 3, Wanted: 3 };

  test('all pods of the newest template count', () => {
    expect(isDeploymentReady(deployment, 3)).toBe(true);
    expect(isDeploymentReady({ ...deployment, 'Up-to-date': 2 }, 3)).toBe(false);
    expect(isDeploymentReady({ ...deployment, Available: 2 }, 3)).toBe(false);
    expect(isDeploymentReady(deployment, 4)).toBe(false);
    expect(isRenderServiceReady(resource, 3)).toBe(true);
    expect(isRenderServiceReady({ ...resource, Ready: 'False' }, 3)).toBe(false);
    expect(isRenderServiceReady({ ...resource, Pods: 2 }, 3)).toBe(false);
  });

  test('each service counts once, at its first time; others do not', () => {
    const arrivals = new Arrivals(['s0', 's1'], (row) => row.Ready === 'True');
    arrivals.see({ Name: 's0', Ready: 'False' }, 1);
    arrivals.see({ Name: 's0', Ready: 'True' }, 2);
    arrivals.see({ Name: 's0', Ready: 'True' }, 3);
    arrivals.see({ Name: 'other', Ready: 'True' }, 3);
    expect([arrivals.left, arrivals.timesS]).toEqual([1, [2]]);
    arrivals.see({ Name: 's1', Ready: 'True' }, 4);
    expect([arrivals.left, arrivals.timesS]).toEqual([0, [2, 4]]);
  });

  test('rows of a watch have the names of its first event', () => {
    const read = rowReader();
    const event = (object: object, type = 'MODIFIED') => read(JSON.stringify({ type, object }));
    expect(event({ columnDefinitions: [{ name: 'Name' }, { name: 'Pods' }], rows: [{ cells: ['s0', 1] }] })).toEqual([
      { type: 'MODIFIED', row: { Name: 's0', Pods: 1 } },
    ]);
    expect(event({ columnDefinitions: null, rows: [{ cells: ['s0', 2] }] }, 'DELETED')).toEqual([
      { type: 'DELETED', row: { Name: 's0', Pods: 2 } },
    ]);
  });
});

describe('writes', () => {
  const line = (labels: string, count: number) => `apiserver_request_total{${labels}} ${count}`;
  const page = [
    '# TYPE apiserver_request_total counter',
    line('code="200",dry_run="",resource="renderservices",scope="resource",subresource="status",verb="PATCH"', 3),
    line('code="201",dry_run="",resource="pods",scope="resource",subresource="",verb="POST"', 2),
    line('code="409",dry_run="",resource="secrets",scope="resource",subresource="",verb="POST"', 9),
    line('code="200",dry_run="",resource="leases",scope="resource",subresource="",verb="PUT"', 9),
    line('code="200",dry_run="",resource="pods",scope="cluster",subresource="",verb="WATCH"', 9),
    line('code="201",dry_run="",resource="subjectaccessreviews",scope="cluster",subresource="",verb="POST"', 9),
    line('code="200",dry_run="All",resource="pods",scope="resource",subresource="",verb="PATCH"', 9),
  ].join('\n');

  test('neither reads nor refusals nor leases', () => {
    expect(writesIn(page)).toEqual({ 'renderservices/status': 3, pods: 2 });
  });

  test('since then', () => {
    const now = { pods: 2, events: 4, 'renderservices/status': 8 };
    expect(since(writesIn(page), now)).toEqual({ events: 4, 'renderservices/status': 5 });
    expect(total(since(now, now))).toBe(0);
    expect(writesText(since(writesIn(page), now))).toBe('5 renderservices/status, 4 events');
    expect(writesText({})).toBe('none');
  });
});

test('an answer in chunks is read as one in a piece', () => {
  const head = 'HTTP/1.1 200 OK\r\n';
  expect(bodyOf(`${head}Content-Length: 8\r\n\r\nab\r\ncdef`)).toBe('ab\r\ncdef');
  expect(bodyOf(`${head}Transfer-Encoding: chunked\r\n\r\n3\r\nab\n\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n`)).toBe(
    'ab\n0123456789abcdef',
  );
});

test('memory is the middle of what was seen between two looks, time the share of a core', () => {
  const looks = [90, 200, 210, 190, 500].map((rssMib, atS) => ({ atS, rssMib, cpuMs: 100 * atS }));
  const [, from, , to] = looks;
  if (!from || !to) throw new AssertionError({ message: 'no looks' });
  expect(between(looks, from, to)).toEqual({ rssMib: 200, coreShare: 0.1 });
});

describe('the report', () => {
  const result = (shape: string, changes: Partial<Result> = {}): Result => ({
    shape: parseShape(shape),
    plain: { appliedS: 1, readyS: 10, timesS: [5, 10] },
    corelane: { appliedS: 2, readyS: 12.8, timesS: [6, 12.8] },
    memory: {
      rssMib: 180.4,
      rssMibMax: 230,
      restartedRssMib: 150,
      looks: [
        { atS: 0, rssMib: 90, cpuMs: 0 },
        { atS: 50, rssMib: 180, cpuMs: 1 },
      ],
    },
    events: [[12.8, 'ready']],
    restS: undefined,
    steady: {
      seconds: 60,
      writes: { events: 2 },
      coreShare: 0.123,
      samples: 80,
      sampleErrors: 1,
      heapMib: 120,
      operatorWrites: 0,
    },
    restart: { cachesS: 2.5, leadsS: 3, writes: {}, operatorWrites: 0 },
    changes: { atRestMs: [30, 40], rollingMs: [100, 200, 5000, 201], queueDepthMax: 7 },
    ...changes,
  });
  const report = (...results: Result[]): OperatorReport => ({
    machine: { cpus: 2, model: 'M', kernel: '6', node: 'v24', loadBefore: 0.1, heapMib: 192 },
    pageBytes: 35_000,
    results,
  });

  test('the last line is of the largest', () => {
    expect(lastLine(report(result('5x2'), result('7x10/2'), result('10x7')))).toBe(
      'operator: services=10 pods=70 ready_ratio=1.28 rss_mib=180 steady_writes=2 restart_writes=0',
    );
    expect(lastLine(report())).toBe('operator: nothing was measured');
  });

  test('a change that came too late is told, and a fleet that never rested', () => {
    const text = markdown(report(result('5x2')));
    expect(text).toMatch(/\| 5x2\/1 +\| +30 \/ 40 \| +200 \/ 5000 \| +50 % \| +7 \|/);
    expect(text).toMatch(/\| 5x2\/1 +\| +never \| +2 events \| +none \|/);
    expect(text).toMatch(/\| 5x2\/1 +\| +180 \| +230 \| +120 \| +12\.3 \| +20 \| +1 \| +2\.5 \| +3\.0 \|/);
  });

  test('is drawn, both fleets and the memory', () => {
    const svg = picture(report(result('5x2')));
    expect(svg).toContain('services that are ready');
    expect(svg).toContain('memory of the operator');
  });
});
