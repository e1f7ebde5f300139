import type { FleetBreaker, FleetWorker } from '../../shared/fleet.ts';
import { describeBreaker } from './describe.ts';

/** What several workers do not call, as one line. */
export interface OpenBreaker {
  /** A model, or `all models`. */
  readonly target: string;
  /** `open: provider error` */
  readonly text: string;
  /** Live workers where it is so. */
  readonly workers: number;
  /** The earliest of theirs. */
  readonly nextProbeAt: string | undefined;
}

/** Breakers and cooldowns of live workers, one for each model and state; the account's first. */
export function openBreakersOf(workers: readonly FleetWorker[]): OpenBreaker[] {
  const all = workers.flatMap(({ state, breakers }) => (state === 'silent' ? [] : breakers));
  const groups = new Map<string, FleetBreaker[]>();
  for (const breaker of all.toSorted(accountFirst)) {
    const key = JSON.stringify([breaker.model, describeBreaker(breaker)]);
    groups.set(key, [...(groups.get(key) ?? []), breaker]);
  }
  return [...groups.values()].flatMap((same) => {
    const [first] = same;
    if (first === undefined) return [];
    const [nextProbeAt] = same.flatMap((breaker) => breaker.nextProbeAt ?? []).toSorted();
    const target = first.model ?? 'all models';
    return [{ target, text: describeBreaker(first), workers: same.length, nextProbeAt }];
  });
}

const accountFirst = (a: FleetBreaker, b: FleetBreaker): number =>
  Number(b.model === null) - Number(a.model === null);
