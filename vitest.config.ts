import { defineConfig } from 'vitest/config';
import { findStores } from './test/support/stores.js';
import { StoresReporter } from './test/support/stores-reporter.js';

const stores = await findStores();

/** `parts` holds everything that needs no queue; the whole-path suite in test/system runs once on each store. */
export default defineConfig({
  test: {
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // Most of the time tests wait for programs, so more run at once than there are processors on a small machine.
    maxWorkers: 4,
    reporters: ['default', new StoresReporter(stores)],
    projects: [
      { extends: true, test: { name: 'parts', include: ['test/**/*.test.ts'], exclude: ['test/system/**'] } },
      ...stores
        .filter(({ servedBy }) => servedBy !== undefined)
        .map(({ name }) => ({
          extends: true as const,
          test: { name, include: ['test/system/**/*.test.ts'], globalSetup: ['test/support/start-store.ts'] },
        })),
    ],
  },
});
