import { globSync, readFileSync } from 'node:fs';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { FaultsReporter } from './test/faults/support/faults-reporter.js';
import { measureSlowness } from './test/support/machine-speed.js';
import { findRedisTopologies, findStores } from './test/support/stores.js';
import { type Suite, SuitesReporter } from './test/support/suites-reporter.js';

const stores = await findStores();
const topologies = findRedisTopologies();
const served = stores.flatMap(({ name, servedBy }) => (servedBy ? [name] : []));
const servedTopologies = topologies.flatMap(({ name, servedBy }) => (servedBy ? [name] : []));

const wholePath = ['test/system/**/*.test.ts'];
/** What keeps the processors busy for long, or checks times while little else runs: one file for each processor. */
const laborious = [
  'test/db/post-{explain,search-cost}.test.ts',
  'test/blog/hostile-input.test.ts',
  'test/api/blog/rendering/hostile-texts.test.ts',
  'test/api/openai/hostile-completions.test.ts',
  'test/workers/providers/{schemas,size-limit}.test.ts',
];
/** How a release is built, packed, started, backed up and followed by the next one. */
const release = [
  'test/dev/{build,install-scripts,start}.test.ts',
  'test/dev/{postgres,release}/**/*.test.ts',
  'test/{operations,tls}/**/*.test.ts',
  // What every store of the queue has to do, and dead connections that only time shows: on one server, a cluster and
  // with Sentinels.
  'test/shared/queue/queue-store.test.ts',
  'test/shared/queue/stores/{redis-connection,postgres-pool}.test.ts',
  // The same of the stores of chat and blog.
  'test/api/chat/chat-service-store-down.test.ts',
  'test/db/database/{client,listener,migrate}.test.ts',
  // A deployment for each test, all on the embedded PostgreSQL.
  'test/blog/credentials.test.ts',
  // Most of their time they wait until they may guess credentials again.
  'test/fuzz/**/*.test.ts',
  // The benchmark's own.
  'test/bench/**/*.test.ts',
];
/** A deployment for each test, seconds that have to pass, or hundreds of chats. */
const longPath = [
  'test/system/{procfile,release,upgrade}.test.ts',
  'test/system/{console-sessions,database-down,fallback,fleet,history,images,live-settings,metrics,openai-clients,prometheus,rate-limits,real-providers,tools,tools-clients,tools-page,traces,upkeep,worker-faults}.test.ts',
];
/** Faults that take a whole machine, or are measured to a tenth of a second: nothing else runs beside them. */
const faultsAlone = [
  'test/faults/{cancel,deadlines,fairness,load,many-leave,one-user,rolling-restart}.test.ts',
  'test/faults/{slow-readers,unread-streams,wave}.test.ts',
];

/** Starts programs, or changes what all code in a process sees: gets a process of its own. */
const needsProcess =
  /node:child_process|support\/(deployment|command-line|redis-process|redis-topologies)\.js|vi\.(mock|stubEnv)/;
const others = globSync('test/**/*.test.ts', {
  exclude: [...laborious, ...release, 'test/{system,faults,redis,deployment,console/browser}/**'],
});
const programs = others.filter((file) => needsProcess.test(readFileSync(file, 'utf8')));
const parts = others.filter((file) => !programs.includes(file));

const postgres = 'test/support/start-postgres.ts';
const withStore = [postgres, 'test/support/start-store.ts'];
/** Most of the time tests wait, so more run at once than there are processors on a small machine. */
const waiting = { maxWorkers: 4 };
const slowness = measureSlowness();
/**
 * For files that wait even more: for seconds that have to pass. On a slow machine they keep the processors busy, and
 * would miss their times, so fewer run at once.
 */
const waitingLong = (files: number) => ({ maxWorkers: Math.max(2, Math.floor(files / slowness)) });

type ProjectOptions = TestProjectInlineConfiguration['test'] & { order: number };

function project({ order, ...test }: ProjectOptions): TestProjectInlineConfiguration {
  return { extends: true, test: { ...test, sequence: { groupOrder: order } } };
}

/** The catalogue on one store: most cases wait for seconds that have to pass, so those of all stores run at once. */
const faults = (store: string, index: number) => [
  project({
    name: `${store} faults`,
    include: ['test/faults/**/*.test.ts'],
    exclude: faultsAlone,
    globalSetup: withStore,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    ...waitingLong(6),
    order: 10,
  }),
  project({
    name: `${store} faults alone`,
    include: faultsAlone,
    globalSetup: withStore,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 1,
    order: 12 + index,
  }),
];

/** Whole path, worker deaths and failovers on several Redis servers. */
const onTopology = (store: string) =>
  project({
    name: store,
    include: [...wholePath, 'test/redis/**/*.test.ts', 'test/faults/{workers,store-trouble}.test.ts'],
    // The release before this one knows of one server alone, and clients know nothing of servers.
    exclude: ['test/system/{upgrade,tools-clients}.test.ts'],
    globalSetup: withStore,
    ...waitingLong(3),
    order: 20,
  });

const embedded = 'embedded-postgres';
const projects = {
  tests: [
    // Nothing is loaded twice: these files share the modules of their process.
    project({
      name: 'parts',
      include: parts,
      setupFiles: ['test/support/shared-process.ts'],
      isolate: false,
      globalSetup: [postgres],
      ...waiting,
      order: 0,
    }),
    project({ name: 'programs', include: programs, globalSetup: [postgres], ...waiting, order: 0 }),
    project({
      name: embedded,
      include: wholePath,
      exclude: longPath,
      globalSetup: withStore,
      ...waiting,
      order: 0,
    }),
  ],
  release: [
    project({ name: 'laborious', include: laborious, globalSetup: [postgres], maxWorkers: 2, order: 2 }),
    project({ name: 'release', include: release, globalSetup: [postgres], ...waitingLong(6), order: 3 }),
    ...served.map((store) =>
      project({
        name: `${store} release`,
        include: store === embedded ? longPath : wholePath,
        globalSetup: withStore,
        ...waitingLong(6),
        order: 3,
      }),
    ),
  ],
  faults: served.flatMap(faults),
  'redis-topologies': servedTopologies.map(onTopology),
  browser: [
    project({
      name: 'browser',
      include: ['test/console/browser/**/*.test.ts'],
      globalSetup: [postgres, 'test/console/browser/support/chromium.ts'],
      // Each has a browser and a deployment, and looks at how fast something is seen.
      maxWorkers: 1,
      order: 4,
    }),
  ],
  deployment: [
    project({
      name: 'deployment',
      include: ['test/deployment/**/*.test.ts'],
      globalSetup: ['test/deployment/support/build-image.ts'],
      testTimeout: 60_000,
      hookTimeout: 240_000,
      // One counts the containers of all.
      maxWorkers: 1,
      order: 30,
    }),
  ],
};

const suite = (name: keyof typeof projects, title: string, on: Suite['stores'] = []): Suite => ({
  name,
  title,
  projects: projects[name].map(({ test }) => String(test?.name)),
  stores: on,
});
const suites = [
  suite('tests', 'Tests', stores),
  suite('release', 'Release', stores),
  suite('faults', 'Faults', stores),
  suite('redis-topologies', 'Redis on several servers', topologies),
  suite('browser', 'Browser'),
  suite('deployment', 'Deployment'),
];

/** Files that take most of a minute. */
const longest =
  /(fuzz\/changes|live-settings|worker-faults|system\/fleet|queue-store|embedded-postgres|redis-connection|lost-callers|dead-connections|system\/tools|faults\/workers)\.test\.ts$/;

/** The longest files first, the many short ones last: so no processor waits at the end for a long one. */
class ShortFilesLast extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = ({ moduleId, project }: TestSpecification) =>
      longest.test(moduleId) ? 0 : project.name === 'parts' ? 2 : 1;
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}

/** All suites: package.json's scripts choose the projects of one, and vitest without a choice runs everything. */
export default defineConfig({
  test: {
    globalSetup: ['test/support/build.ts'],
    provide: { slowness },
    // Far more than any test takes: on a machine with too much to do everything takes many times as long.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    sequence: { sequencer: ShortFilesLast },
    reporters: ['default', new FaultsReporter(), new SuitesReporter(suites)],
    projects: Object.values(projects).flat(),
  },
});
