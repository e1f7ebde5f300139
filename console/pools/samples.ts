import type { Sample, Samples } from '../../shared/contracts/history.ts';
import { Followed } from '../parts/followed.ts';

const slotMs = 5000;
/** Ten minutes of one every five seconds. */
export const maxSamples = 120;

/** The samples with one more, in its place if that was there already. */
export function addSample(before: readonly Sample[], sample: Sample): Sample[] {
  const others = before.filter(({ at }) => at !== sample.at);
  return [...others, sample].sort((a, b) => (a.at < b.at ? -1 : 1)).slice(-maxSamples);
}

/** How much ran and waited in each five seconds of the ten minutes before the last sample; null where it is unknown. */
export function loadOf(samples: readonly Sample[]): (number | null)[] {
  const slotOf = ({ at }: Sample) => Math.floor(Date.parse(at) / slotMs);
  const known = samples.filter(({ inFlight, waiting }) => inFlight !== null || waiting !== null);
  const load = new Map(known.map((one) => [slotOf(one), (one.inFlight ?? 0) + (one.waiting ?? 0)]));
  const first = Math.max(0, ...samples.map(slotOf)) - maxSamples + 1;
  return Array.from({ length: maxSamples }, (_, n) => load.get(first + n) ?? null);
}

/** A line over ten minutes: its last value, its highest, its mean. Undefined without any. */
export function summaryOf(values: readonly (number | null)[]) {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return undefined;
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
  return { last: values.at(-1) ?? null, max: Math.max(...known), mean };
}

/** The last ten minutes of a provider. */
export const openSamples = (provider: string) =>
  new Followed<Pick<Samples, 'samples'>, Sample>({
    path: `/admin/samples?provider=${encodeURIComponent(provider)}`,
    event: 'sample',
    // After a break.
    again: ['snapshot'],
    add: (known, sample) =>
      sample.provider === provider ? { samples: addSample(known.samples, sample) } : known,
  });
