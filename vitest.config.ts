import { defineConfig } from 'vitest/config';
import { findStores } from './test/support/stores.js';
import { StoresReporter } from './test/support/stores-reporter.js';

/** The catalogue of faults always has the embedded PostgreSQL. */
const stores = await findStores();

/** What keeps the processors busy for long; beside it, what has to happen within a time would be late. */
const laborious = ['test/fuzz/**/*.test.ts', 'test/db/post-explain.test.ts', 'test/db/post-search.test.ts'];

/**
 * `parts` holds everything that does not depend on the queue's store; the whole-path suite in test/system runs once on
 * Redis and once on PostgreSQL, and `laborious` when all others are done. The faults have a run of their own: vitest.faults.config.ts.
 */
export default defineConfig({
  test: {
    // Far more than any test takes: on a machine with too much to do everything takes many times as long.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // Most of the time tests wait for programs, so more run at once than there are processors on a small machine.
    maxWorkers: 4,
    reporters: ['default', new StoresReporter(stores)],
    projects: [
      {
        extends: true,
        test: {
          name: 'parts',
          include: ['test/**/*.test.ts'],
          exclude: ['test/system/**', 'test/faults/**', 'test/redis/**', 'test/deployment/**', ...laborious],
          globalSetup: ['test/support/start-postgres.ts'],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'laborious',
          include: laborious,
          globalSetup: ['test/support/start-postgres.ts'],
          sequence: { groupOrder: 1 },
        },
      },
      ...stores
        .filter(({ servedBy }) => servedBy !== undefined)
        .map(({ name }) => ({
          extends: true as const,
          test: {
            name,
            include: ['test/system/**/*.test.ts'],
            globalSetup: ['test/support/start-postgres.ts', 'test/support/start-store.ts'],
            sequence: { groupOrder: 0 },
          },
        })),
    ],
  },
});
