import type { Lifecycle } from '../../shared/runtime/lifecycle.js';
import type { StoreName } from './options.js';
import type { StoreCounts } from './store-counts.js';

/** A store that can be started here. */
export interface StoreChoice {
  readonly name: StoreName;
  /** What serves it and in which version, in words for people. */
  readonly servedBy: string;
  /** Starts it, its files in `dir`, and registers how to stop it. */
  open(lifecycle: Lifecycle, dir: string): Promise<RunningStore>;
}

/** A store that runs. */
export interface RunningStore {
  /** Environment variables that lead our programs to it. */
  readonly variables: Readonly<Record<string, string>>;
  /** Its first process; undefined when it is not the benchmark's own. */
  readonly pid: number | undefined;
  /** What it has counted since it started; absent where it does not count. */
  count?(): Promise<StoreCounts>;
}

/** Says what a store is called in reports. */
export const storeTitles: Readonly<Record<StoreName, string>> = {
  embedded: 'embedded PostgreSQL',
  redis: 'Redis',
};
