import type { Sample, Samples } from '../../shared/contracts/history.ts';
import { useAnswer } from '../parts/answer.ts';
import { addressOf } from '../parts/paged-table.tsx';

const slotMs = 5000;
/** Ten minutes of one every five seconds. */
const maxSamples = 120;

/** How much ran and waited in each five seconds of the ten minutes before the last sample; null where it is unknown. */
export function loadOf(samples: readonly Sample[]): (number | null)[] {
  const slotOf = ({ at }: Sample) => Math.floor(Date.parse(at) / slotMs);
  const known = samples.filter(({ inFlight, waiting }) => inFlight !== null || waiting !== null);
  const load = new Map(known.map((one) => [slotOf(one), (one.inFlight ?? 0) + (one.waiting ?? 0)]));
  const first = Math.max(0, ...samples.map(slotOf)) - maxSamples + 1;
  return Array.from({ length: maxSamples }, (_, n) => load.get(first + n) ?? null);
}

/** A line over ten minutes: its last value and its highest. Undefined without any. */
export function summaryOf(values: readonly (number | null)[]) {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? undefined : { last: values.at(-1) ?? null, max: Math.max(...known) };
}

/** The last ten minutes of a provider, read again with each sample. */
export function useSamples(provider: string) {
  const { value, error } = useAnswer<Pick<Samples, 'samples'>>(
    addressOf('/admin/samples', { provider }),
    slotMs,
  );
  return { samples: value?.samples ?? [], error };
}
