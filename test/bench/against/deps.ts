import type { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import type { Log } from '../../../shared/runtime/log.js';
import type { Round, Side } from './statistics.js';

/** What each part of a comparison needs. */
export interface ComparisonDeps {
  /** Root folders of the two checkouts. */
  readonly roots: Readonly<Record<Side, string>>;
  readonly rounds: number;
  /** Length of each measurement, after a warm-up of `warmUpSeconds`. */
  readonly seconds: number;
  readonly warmUpSeconds: number;
  /** Folder for logs and the stores' files. */
  readonly dir: string;
  readonly outer: Lifecycle;
  readonly log: Log;
  onRound(title: string, round: Round): void;
}
