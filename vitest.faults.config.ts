import { defineConfig } from 'vitest/config';
import { FaultsReporter } from './test/faults/support/faults-reporter.js';
import { findStores } from './test/support/stores.js';
import { StoresReporter } from './test/support/stores-reporter.js';

const stores = await findStores();

/** The catalogue of faults, on each store: one file after the other, because what is measured needs a quiet machine. */
// biome-ignore lint/style/noDefaultExport: vitest reads it.
export default defineConfig({
  test: {
    testTimeout: 60_000,
    hookTimeout: 60_000,
    fileParallelism: false,
    reporters: [
      'default',
      new FaultsReporter((ranOn) => `test-results/fault-cases-${ranOn.join('-and-')}.json`),
      new StoresReporter(stores, {
        suite: 'Faults',
        fileOf: (ranOn) => `test-results/faults-${ranOn.join('-and-')}.json`,
      }),
    ],
    projects: stores
      .filter(({ name, servedBy }) => name !== 'postgres-container' && servedBy !== undefined)
      .map(({ name }, groupOrder) => ({
        extends: true as const,
        test: {
          name,
          include: ['test/faults/**/*.test.ts'],
          globalSetup: ['test/support/start-store.ts'],
          sequence: { groupOrder },
        },
      })),
  },
});
