import { effect, signal } from '@preact/signals';
import type { Fleet } from '../../shared/fleet-contract.ts';
import type { Sample, Samples } from '../../shared/history.ts';
import { call } from '../api.ts';
import { now } from '../parts/clock.ts';
import { fleet, isStale, onEvent } from '../store.ts';

/** What ran and waited at each provider, by the number of the slot: the last value of each. */
export type RecentLoad = ReadonlyMap<string, ReadonlyMap<number, number>>;

/** Ten minutes, as long as samples are kept: those that were taken before the page was opened, and since then what it has seen. */
export const recentLoad = signal<RecentLoad>(new Map());

/** As long as a sample, in milliseconds of the browser's clock. */
const slotMs = 5000;
const kept = 120;

const slotOf = (time: number): number => Math.floor(time / slotMs);

/** Records until the function given back is called. */
export function recordLoad(): () => void {
  const stopping = new AbortController();
  const measurements = new Measurements(stopping.signal);
  void measurements.read();
  const ends = [
    // After a break.
    onEvent('snapshot', () => void measurements.read()),
    // Of a page in the background the clock may stand still for a minute.
    onEvent('sample', (data) => measurements.add([data as Sample])),
    effect(() => {
      const time = now.value;
      const seen = fleet.peek();
      // What is shown then is no longer known to be true.
      if (seen && !isStale.peek()) recentLoad.value = addLoad(recentLoad.peek(), seen, time);
    }),
  ];
  return () => {
    stopping.abort();
    for (const end of ends) end();
  };
}

/** The values of a provider, oldest first, one for each slot until `time`; null where nothing is known. */
export function loadUntil(load: RecentLoad, provider: string, time: number): (number | null)[] {
  const slots = load.get(provider);
  const last = slotOf(time);
  return Array.from({ length: kept }, (_, n) => slots?.get(last - kept + 1 + n) ?? null);
}

/** What the load becomes with the fleet as it is at `time`. */
export function addLoad(
  before: RecentLoad,
  { providers }: Pick<Fleet, 'providers'>,
  time: number,
): RecentLoad {
  const slot = slotOf(time);
  return new Map(
    providers.map(({ provider, inFlight, queue }) => [
      provider,
      keepRecent(slot, [...(before.get(provider) ?? []), [slot, inFlight + (queue?.waiting ?? 0)]]),
    ]),
  );
}

/** What the load becomes with what was measured, at times of the browser's clock; where the page has seen something itself, that stays. */
export function addSamples(before: RecentLoad, samples: readonly Sample[], time: number): RecentLoad {
  const load = new Map(before);
  for (const { provider, at, inFlight, waiting } of samples) {
    const slots = load.get(provider) ?? new Map<number, number>();
    const measured = [slotOf(Date.parse(at)), (inFlight ?? 0) + (waiting ?? 0)] as const;
    if (inFlight !== null || waiting !== null)
      load.set(provider, keepRecent(slotOf(time), [measured, ...slots]));
  }
  return load;
}

/** The later of two values of a slot counts. */
const keepRecent = (last: number, slots: (readonly [number, number])[]): Map<number, number> =>
  new Map(slots.filter(([slot]) => slot > last - kept && slot <= last));

/** What the server has measured. It is for a picture beside numbers: without an answer that has what there is. */
class Measurements {
  readonly #stopped: AbortSignal;
  /** How far the browser's clock is ahead of the server's; undefined before the first answer. */
  #aheadMs: number | undefined;

  constructor(stopped: AbortSignal) {
    this.#stopped = stopped;
  }

  async read(): Promise<void> {
    try {
      const { body } = await call<Samples>('/admin/samples', { signal: this.#stopped });
      this.#aheadMs = Date.now() - Date.parse(body.at);
      this.add(body.samples);
    } catch {
      // The next snapshot reads again.
    }
  }

  add(samples: readonly Sample[]): void {
    const aheadMs = this.#aheadMs;
    if (aheadMs === undefined) return;
    const shifted = samples.map((sample) => ({
      ...sample,
      at: new Date(Date.parse(sample.at) + aheadMs).toISOString(),
    }));
    recentLoad.value = addSamples(recentLoad.peek(), shifted, Date.now());
  }
}
