import type { Sample, Samples } from '../../shared/history.ts';
import { Followed } from '../parts/followed.ts';

/** Ten minutes of one every five seconds. */
export const maxSamples = 120;

/** The samples with one more, in its place if that was there already. */
export function addSample(before: readonly Sample[], sample: Sample): Sample[] {
  const others = before.filter(({ at }) => at !== sample.at);
  return [...others, sample].sort((a, b) => (a.at < b.at ? -1 : 1)).slice(-maxSamples);
}

/** A line over ten minutes: its last value, its highest, its mean. Undefined without any. */
export function summaryOf(
  values: readonly (number | null)[],
): { last: number | null; max: number; mean: number } | undefined {
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
