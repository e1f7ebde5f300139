import { defineConfig } from 'vitest/config';
import { FaultsReporter } from './test/faults/support/faults-reporter.js';
import { findRedisTopologies } from './test/support/stores.js';
import { StoresReporter } from './test/support/stores-reporter.js';

const topologies = findRedisTopologies();
const served = topologies.filter(({ servedBy }) => servedBy !== undefined);

/** The whole path, worker deaths and failovers on a Redis Cluster and on a master with replicas that Sentinels watch. */
// biome-ignore lint/style/noDefaultExport: vitest reads it.
export default defineConfig({
  test: {
    // Far more than any test takes: on a machine with too much to do everything takes many times as long.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    reporters: [
      'default',
      new FaultsReporter('test-results/fault-cases-redis-topologies.json'),
      new StoresReporter(topologies, {
        suite: 'Redis on several servers',
        file: 'test-results/redis-topologies.json',
      }),
    ],
    projects: served.flatMap(({ name }) => [
      {
        extends: true as const,
        test: {
          name,
          include: ['test/system/**/*.test.ts'],
          // The release before this one knows of one server alone.
          exclude: ['test/system/upgrade.test.ts'],
          globalSetup: ['test/support/start-postgres.ts', 'test/support/start-store.ts'],
          sequence: { groupOrder: 0 },
          maxWorkers: 6,
        },
      },
      {
        extends: true as const,
        test: {
          name: `${name} faults`,
          include: [
            'test/redis/**/*.test.ts',
            'test/faults/workers.test.ts',
            'test/faults/store-trouble.test.ts',
          ],
          globalSetup: ['test/support/start-postgres.ts', 'test/support/start-store.ts'],
          sequence: { groupOrder: 1 },
          // Most of a case is waiting, and what is measured needs a quiet machine.
          maxWorkers: 3,
        },
      },
    ]),
  },
});
