import { defineConfig } from 'vitest/config';
import { FaultsReporter } from './test/faults/support/faults-reporter.js';
import { findStores } from './test/support/stores.js';
import { StoresReporter } from './test/support/stores-reporter.js';

const stores = await findStores();
const served = stores.filter(({ name, servedBy }) => name !== 'postgres-container' && servedBy !== undefined);

/** What they check is a tenth of a second, or takes a whole machine: nothing else runs beside them. */
const alone = ['deadlines', 'cancel', 'many-leave', 'wave'].map((name) => `test/faults/${name}.test.ts`);

/**
 * The catalogue of faults, on each store. Most cases wait for seconds that have to pass, so those of all stores run at
 * once; the ones that need a machine of their own follow, one store after the other.
 */
// biome-ignore lint/style/noDefaultExport: vitest reads it.
export default defineConfig({
  test: {
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: [
      'default',
      new FaultsReporter('test-results/fault-cases.json'),
      new StoresReporter(stores, { suite: 'Faults', file: 'test-results/faults.json' }),
    ],
    projects: [
      ...served.map(({ name }) => project({ name, include: ['test/faults/**/*.test.ts'], exclude: alone })),
      ...served.map(({ name }, order) =>
        project({ name: `${name} alone`, include: alone, maxWorkers: 1, groupOrder: order + 1 }),
      ),
    ],
  },
});

interface ProjectOptions {
  /** Of the store first; see `storeOf`. */
  name: string;
  include: string[];
  exclude?: string[];
  maxWorkers?: number;
  groupOrder?: number;
}

function project({ name, include, exclude = [], maxWorkers = 3, groupOrder = 0 }: ProjectOptions) {
  return {
    extends: true as const,
    test: {
      name,
      include,
      exclude,
      maxWorkers,
      globalSetup: ['test/support/start-postgres.ts', 'test/support/start-store.ts'],
      sequence: { groupOrder },
    },
  };
}
