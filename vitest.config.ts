import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The projects that are folders of `test/`: whole paths, faults, what a release needs, browsers, containers. */
const folders = ['paths', 'faults', 'release', 'browser', 'containers'];

type Options = TestProjectInlineConfiguration['test'] & {
  /** Projects of one number run beside each other, and the numbers one after the other. */
  order: number;
};

function project(name: string, { order, ...test }: Options): TestProjectInlineConfiguration {
  return { extends: true, test: { name, ...test, sequence: { groupOrder: order } } };
}

const servers = 'test/support/servers.ts';
const inFolder = (name: string, options: Omit<Options, 'include'>) =>
  project(name, {
    include: [`test/${name}/**/*.test.ts`],
    setupFiles: ['test/support/built.ts'],
    ...options,
  });

/** The longest files of a folder, which begin first, so that no processor waits for one at the end. */
const longest = /(live-settings|tools|fuzz|start|backup|store-away|failover|conformance)[^/]*\.test\.ts$/;

class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project: { name } }: TestSpecification) =>
      (name === 'parts' ? 2 : 0) + (longest.test(moduleId) ? 0 : 1);
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

/**
 * `npm test` runs the parts beside the paths, `npm run test:all` everything; `--project` chooses one. A test that has
 * to wait for a signal may wait for long: no test is about the limit.
 */
export default defineConfig({
  test: {
    globalSetup: ['test/support/build.ts'],
    testTimeout: 180_000,
    hookTimeout: 180_000,
    sequence: { sequencer: LongFilesFirst },
    reporters: process.env.CI ? ['default', ['json', { outputFile: 'test-results/last.json' }]] : ['default'],
    projects: [
      // Nothing is loaded twice: these files share the modules of their process.
      project('parts', {
        include: ['test/**/*.test.ts'],
        exclude: folders.map((name) => `test/${name}/**`),
        setupFiles: ['test/support/shared-process.ts'],
        isolate: false,
        globalSetup: [servers],
        maxWorkers: 4,
        order: 0,
      }),
      inFolder('paths', { globalSetup: [servers], isolate: false, maxWorkers: 4, order: 0 }),
      inFolder('release', { globalSetup: [servers], maxWorkers: 3, order: 1 }),
      inFolder('faults', { globalSetup: [servers], maxWorkers: 3, order: 2 }),
      inFolder('browser', {
        globalSetup: [servers, 'test/browser/support/chromium.ts'],
        maxWorkers: 1,
        order: 3,
      }),
      inFolder('containers', {
        globalSetup: ['test/containers/support/build-image.ts'],
        maxWorkers: 1,
        order: 4,
      }),
      // The conformance of the stores once more, on the images of the compose file.
      project('stores', {
        include: ['test/faults/conformance/**/*.test.ts'],
        setupFiles: ['test/support/built.ts'],
        globalSetup: ['test/containers/support/store-images.ts'],
        maxWorkers: 3,
        order: 5,
      }),
    ],
  },
});
