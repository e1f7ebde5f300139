import { type LoadListeners, type LoadOrder, type LoadResult, runLoad } from './load.js';
import { countsBetween, type StoreCounts } from './store-counts.js';
import { type PartPids, startMeter, type Usage } from './usage.js';

export const warmUpSeconds = 2;
export const timeoutSeconds = 10;

/** What to send; the rest of a load generator's order has defaults. */
type Order = Omit<LoadOrder, 'timeoutSeconds' | 'warmUpSeconds'> &
  Partial<Pick<LoadOrder, 'timeoutSeconds' | 'warmUpSeconds'>>;

/** What is looked at while a load generator measures. */
export interface Meters {
  readonly pids: PartPids;
  readonly signal: AbortSignal;
  /** What the store has counted since it started. */
  countStore?: (() => Promise<StoreCounts>) | undefined;
}

/** What came of a load, and what its measured time cost. */
export interface Metered<Result> {
  readonly load: Result;
  readonly usage: Usage;
  /** What the store counted meanwhile; absent where it does not count. */
  readonly counts?: StoreCounts;
}

const notMeasured: Usage = { parts: {}, machineBusy: Number.NaN, othersBusy: Number.NaN };

/** Sends the requests, and says what came of them and what it cost the processes. */
export function measure(wanted: Order, meters: Meters): Promise<Metered<LoadResult>> {
  const order = { warmUpSeconds, timeoutSeconds, ...wanted };
  return metered(meters, (listeners) => runLoad(order, listeners));
}

/** Runs a load generator, and says what its measured time cost the processes. */
export async function metered<Result>(
  { pids, signal, countStore }: Meters,
  run: (listeners: LoadListeners) => Promise<Result>,
): Promise<Metered<Result>> {
  let meter: ReturnType<typeof startMeter> | undefined;
  let usage: Usage | undefined;
  const looks: Promise<StoreCounts>[] = [];
  const lookAtStore = () => {
    if (countStore) looks.push(countStore());
  };
  const onMeasured = () => {
    usage = meter?.stop();
    meter = undefined;
    lookAtStore();
  };
  const onMeasuring = (pid: number | undefined) => {
    meter = startMeter({ ...pids, load: pid });
    lookAtStore();
  };
  try {
    const load = await run({ onMeasuring, onMeasured, signal });
    const [before, after] = await Promise.all(looks);
    const counts = before && after && countsBetween(before, after);
    return { load, usage: usage ?? notMeasured, ...(counts && { counts }) };
  } finally {
    meter?.stop();
  }
}
