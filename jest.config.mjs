/**
 * One Jest configuration with a project per kind of test:
 *   unit     computes only, no engine, no cluster                 (make test)
 *   api      against a real kube-apiserver and etcd               (make test)
 *   sidecar  on the real sidecar image with real Node workers; the alerts, by Prometheus itself (make test)
 *   frameworks  the apps of examples/frameworks, in Chromium, too  (make test-frameworks)
 *   alerts   faults of a fleet, seen by Prometheus                (make test-alerts)
 *   keda     RenderServices scaled by KEDA                        (make test-keda)
 *   argocd   RenderServices, compared by Argo CD with those in Git  (make test-argocd)
 *   tracing  spans, as an OpenTelemetry Collector gets them       (make test-tracing)
 *   dashboards  each query of the dashboards, asked of Prometheus  (make test-dashboards)
 *   browser  the page of corelane dashboard, in Chromium         (make test-browser)
 *   e2e      stories on the kind cluster                          (make e2e)
 *   load     *.load.test.ts of api, sidecar and e2e: what depends on rates, times or free cores  (make test-load)
 * `make test` and `make e2e` are the gate: what they say must not depend on how busy the machine is.
 */
const common = {
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '\\.ts$': ['@swc/jest', { jsc: { target: 'es2024', parser: { syntax: 'typescript' } }, module: { type: 'es6' } }],
  },
  testPathIgnorePatterns: ['/node_modules/', '/dist/', '\\.load\\.test\\.ts$'],
};

/** The load tests of one folder (`CORELANE_LOAD_PART=sidecar`), or all: make test-load runs one after the other. */
const { CORELANE_LOAD_PART: loadPart } = process.env;
const loadFolder = ['operator', 'sidecar', 'e2e'].includes(loadPart) ? loadPart : '{operator,sidecar,e2e}';

/** One API server for all test files of a project. */
const apiServer = {
  testEnvironment: '<rootDir>/operator/test/support/environment.mjs',
  globalSetup: '<rootDir>/operator/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/operator/test/support/global-teardown.ts',
};

/** For tests that wait for something: a program, a server, a timer. */
const timeLimit = ['<rootDir>/e2e/harness/cluster/time-limit.ts'];

export default {
  projects: [
    {
      ...common,
      displayName: 'unit',
      testMatch: [
        '<rootDir>/operator/test/unit/**/*.test.ts',
        '<rootDir>/examples/**/*.test.mjs',
        '<rootDir>/e2e/load/*.test.mjs',
        '<rootDir>/bench/test/*.test.ts',
        '<rootDir>/sidecar/test/unit/*.test.ts',
        '<rootDir>/.ci/**/*.test.ts',
      ],
      setupFilesAfterEnv: timeLimit,
    },
    {
      ...common,
      displayName: 'api',
      ...apiServer,
      testMatch: ['<rootDir>/operator/test/api/**/*.test.ts', '<rootDir>/e2e/chart/*.test.ts'],
      setupFilesAfterEnv: timeLimit,
    },
    {
      ...common,
      displayName: 'sidecar',
      testMatch: ['<rootDir>/sidecar/test/*.test.ts', '<rootDir>/e2e/alerts/*.test.ts'],
      setupFilesAfterEnv: [...timeLimit, '<rootDir>/sidecar/test/mutants/apply.ts'],
    },
    {
      ...common,
      displayName: 'frameworks',
      testMatch: ['<rootDir>/sidecar/test/frameworks/*.test.ts', '<rootDir>/e2e/browser/frameworks/*.test.ts'],
      setupFilesAfterEnv: timeLimit,
    },
    {
      ...common,
      displayName: 'alerts',
      testMatch: ['<rootDir>/e2e/alerts/fleet/*.test.ts'],
      setupFilesAfterEnv: timeLimit,
    },
    {
      ...common,
      displayName: 'keda',
      testMatch: ['<rootDir>/e2e/keda/*.test.ts'],
      testEnvironment: '<rootDir>/operator/test/support/environment.mjs',
      setupFilesAfterEnv: timeLimit,
    },
    {
      ...common,
      displayName: 'argocd',
      testMatch: ['<rootDir>/e2e/argocd/*.test.ts'],
      setupFilesAfterEnv: timeLimit,
    },
    {
      ...common,
      displayName: 'tracing',
      testMatch: ['<rootDir>/e2e/collector/*.test.ts'],
      setupFilesAfterEnv: timeLimit,
    },
    {
      ...common,
      displayName: 'dashboards',
      testMatch: ['<rootDir>/e2e/dashboards/*.test.ts'],
      testEnvironment: '<rootDir>/operator/test/support/environment.mjs',
      setupFilesAfterEnv: timeLimit,
    },
    {
      ...common,
      displayName: 'browser',
      testMatch: ['<rootDir>/e2e/browser/*.test.ts'],
      setupFilesAfterEnv: timeLimit,
    },
    { ...common, displayName: 'e2e', testMatch: ['<rootDir>/e2e/stories/**/*.test.ts'], setupFilesAfterEnv: timeLimit },
    {
      ...common,
      displayName: 'load',
      ...(['sidecar', 'e2e'].includes(loadFolder) ? {} : apiServer),
      testMatch: [`<rootDir>/${loadFolder}/**/*.load.test.ts`],
      testPathIgnorePatterns: ['/node_modules/', '/dist/'],
      setupFilesAfterEnv: [...timeLimit, '<rootDir>/sidecar/test/mutants/apply.ts'],
    },
  ],
};
