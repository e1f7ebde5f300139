import type { FleetBreaker, FleetWorker } from '../../shared/fleet-contract.ts';
import { describeBreaker, type Tone, toneOfBreaker } from './describe.ts';

/** What several workers do not call, as one line. */
export interface OpenBreaker {
  /** A model, or `all models`. */
  readonly target: string;
  /** `open: provider error` */
  readonly text: string;
  readonly tone: Tone;
  /** Live workers where it is so. */
  readonly workers: number;
  /** The earliest of theirs. */
  readonly nextProbeAt: string | undefined;
  /** For one that waits for a call: since when, at the worker that has waited longest. */
  readonly idleSince: string | undefined;
}

/** Breakers and cooldowns of live workers by model and state; the account's first, those that wait for a call last. */
export function openBreakersOf(workers: readonly FleetWorker[]): OpenBreaker[] {
  const all = workers.flatMap(({ state, breakers }) => (state === 'silent' ? [] : breakers));
  const groups = Map.groupBy(all.toSorted(worstFirst), (breaker) =>
    JSON.stringify([breaker.model, describeBreaker(breaker)]),
  );
  return [...groups.values()].flatMap((same) => {
    const [first] = same;
    if (first === undefined) return [];
    const [nextProbeAt] = same.flatMap((breaker) => breaker.nextProbeAt ?? []).toSorted();
    const target = first.model ?? 'all models';
    const [since] = same.flatMap((breaker) => breaker.since ?? []).toSorted();
    const idleSince = first.state === 'half-open' ? since : undefined;
    const described = { text: describeBreaker(first), tone: toneOfBreaker(first) };
    return [{ target, ...described, workers: same.length, nextProbeAt, idleSince }];
  });
}

/** The account's before the models', and those that wait for a call last. */
const worstFirst = (a: FleetBreaker, b: FleetBreaker): number =>
  Number(b.model === null) - Number(a.model === null) ||
  Number(a.state === 'half-open') - Number(b.state === 'half-open');
