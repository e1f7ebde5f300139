import { defineConfig } from 'vitest/config';

/** The image and the compose file on a Docker engine, which has to be there: without one the run fails. */
// biome-ignore lint/style/noDefaultExport: vitest reads it.
export default defineConfig({
  test: {
    name: 'deployment',
    include: ['test/deployment/**/*.test.ts'],
    globalSetup: ['test/deployment/support/build-image.ts'],
    testTimeout: 60_000,
    hookTimeout: 240_000,
    reporters: ['default', ['json', { outputFile: 'test-results/deployment.json' }]],
  },
});
