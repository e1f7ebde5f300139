import type { Compared } from './against/comparison.js';
import type { AimResult } from './aims.js';
import type { ApiProcessesRun } from './api-processes/series.js';
import type { BlogResults } from './blog/results.js';
import type { Conditions } from './conditions.js';
import type { LoadErrors } from './load.js';
import type { StoreName } from './options.js';
import type { Run } from './runs.js';
import type { StreamFigures } from './streams/results.js';

/** Everything that came of the benchmark; what `--json` writes. */
export interface Results {
  readonly conditions: Conditions;
  /** Of the chat. */
  readonly series: readonly Series[];
  readonly blog: BlogResults | undefined;
  readonly blogPeer: Compared | undefined;
  readonly streams: readonly StreamFigures[];
  readonly apiProcesses: readonly ApiProcessesRun[];
  /** What did not run, and why. */
  readonly skipped: readonly string[];
  readonly aims: readonly AimResult[];
}

/** The runs on one store, in the order they were done. */
export interface Series {
  readonly store: StoreName;
  readonly runs: readonly Run[];
}

/** How many requests failed in any way. */
export const errorCount = (errors: LoadErrors): number =>
  Object.values(errors.wrongStatus).reduce((sum, count) => sum + count, 0) +
  errors.wrongBody +
  errors.timeouts +
  errors.socket +
  errors.unanswered;

/** How much longer the median answer took than one straight from the simulator, measured just before. */
export function overSimulatorMs({ runs }: Series, run: Run): number | undefined {
  const alone = runs.find(({ target, latencyMs }) => target === 'simulator' && latencyMs === run.latencyMs);
  if (run.target !== 'chat' || run.connections !== alone?.connections) return undefined;
  if (run.load.p50Ms === undefined || alone.load.p50Ms === undefined) return undefined;
  return run.load.p50Ms - alone.load.p50Ms;
}
