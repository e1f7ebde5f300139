import { defineConfig } from 'vitest/config';
import { StoresReporter } from './test/support/stores-reporter.js';

/** Its load has the machine for itself. */
const containers = 'test/deployment/scaling.test.ts';

/** The image and the compose file on a Docker engine, which has to be there: without one the run fails. */
// biome-ignore lint/style/noDefaultExport: vitest reads it.
export default defineConfig({
  test: {
    globalSetup: ['test/deployment/support/build-image.ts'],
    testTimeout: 60_000,
    hookTimeout: 240_000,
    reporters: [
      'default',
      new StoresReporter([], { suite: 'Deployment', file: 'test-results/deployment.json' }),
    ],
    projects: [
      {
        extends: true,
        test: {
          name: 'deployment',
          include: ['test/deployment/**/*.test.ts'],
          exclude: [containers],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: { name: 'containers', include: [containers], sequence: { groupOrder: 1 } },
      },
    ],
  },
});
