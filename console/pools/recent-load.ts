import { effect, signal } from '@preact/signals';
import type { Fleet } from '../../shared/fleet-contract.ts';
import type { Sample, Samples } from '../../shared/history.ts';
import { call } from '../api.ts';
import { now } from '../parts/clock.ts';
import { fleet, isStale, onEvent } from '../store.ts';

/** The running and waiting jobs of each provider, by the number of the slot: the last value of each. */
export type RecentLoad = ReadonlyMap<string, ReadonlyMap<number, number>>;

/** Ten minutes, as long as samples are kept: those from before the page was opened, and its own since then. */
export const recentLoad = signal<RecentLoad>(new Map());

/** As long as a sample, in milliseconds of the browser's clock. */
const slotMs = 5000;
const kept = 120;

const slotOf = (time: number): number => Math.floor(time / slotMs);

/** Records until the function given back is called. */
export function recordLoad(): () => void {
  const stopping = new AbortController();
  /** How far the browser's clock is ahead of the server's; undefined before the first answer. */
  let aheadMs: number | undefined;
  const add = (samples: readonly Sample[]) => {
    const ahead = aheadMs;
    if (ahead === undefined) return;
    const toBrowser = (at: string) => new Date(Date.parse(at) + ahead).toISOString();
    const shifted = samples.map((sample) => ({ ...sample, at: toBrowser(sample.at) }));
    recentLoad.value = addSamples(recentLoad.peek(), shifted, Date.now());
  };
  const read = async () => {
    try {
      const { body } = await call<Samples>('/admin/samples', { signal: stopping.signal });
      aheadMs = Date.now() - Date.parse(body.at);
      add(body.samples);
    } catch {
      // It is for a picture beside numbers, which shows what there is. The next snapshot reads again.
    }
  };
  void read();
  const ends = [
    // After a break.
    onEvent('snapshot', () => void read()),
    // Of a page in the background the clock may stand still for a minute.
    onEvent('sample', (data) => add([data as Sample])),
    effect(() => {
      const time = now.value;
      const seen = fleet.peek();
      // The shown values may be wrong then.
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

/** The load with the fleet as it is at `time`. */
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

/** The load with the samples, at times of the browser's clock; the page's own values stay. */
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
