import { type LoadListeners, type LoadOrder, type LoadResult, runLoad } from './load.js';
import { type PartPids, startMeter, type Usage } from './usage.js';

export const warmUpSeconds = 2;
export const timeoutSeconds = 10;

/** What to send; the rest of a load generator's order has defaults. */
type Order = Omit<LoadOrder, 'timeoutSeconds' | 'warmUpSeconds'> & Partial<Pick<LoadOrder, 'warmUpSeconds'>>;

const notMeasured: Usage = { parts: {}, machineBusy: Number.NaN, othersBusy: Number.NaN };

/** Sends the requests, and says what came of them and what it cost the processes. */
export function measure(
  wanted: Order,
  pids: PartPids,
  signal: AbortSignal,
): Promise<{ load: LoadResult; usage: Usage }> {
  const order = { warmUpSeconds, timeoutSeconds, ...wanted };
  return metered(pids, signal, (listeners) => runLoad(order, listeners));
}

/** Runs a load generator, and says what its measured time cost the processes. */
export async function metered<Result>(
  pids: PartPids,
  signal: AbortSignal,
  run: (listeners: LoadListeners) => Promise<Result>,
): Promise<{ load: Result; usage: Usage }> {
  let meter: ReturnType<typeof startMeter> | undefined;
  let usage: Usage | undefined;
  const onMeasured = () => {
    usage = meter?.stop();
    meter = undefined;
  };
  const onMeasuring = (pid: number | undefined) => {
    meter = startMeter({ ...pids, load: pid });
  };
  try {
    const load = await run({ onMeasuring, onMeasured, signal });
    return { load, usage: usage ?? notMeasured };
  } finally {
    onMeasured();
  }
}
