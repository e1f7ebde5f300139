import { effect, signal } from '@preact/signals';
import type { Fleet } from '../../shared/fleet.ts';
import { now } from '../parts/clock.ts';
import { fleet } from '../store.ts';

/** Two minutes of what ran and waited, one value a second, by provider: from when the page was opened. */
export const recentLoad = signal<ReadonlyMap<string, readonly number[]>>(new Map());

const kept = 120;

/** Records once a second until the function given back is called. */
export const recordLoad = (): (() => void) =>
  effect(() => {
    now.value;
    const seen = fleet.peek();
    if (seen) recentLoad.value = addLoad(recentLoad.peek(), seen);
  });

/** What the map becomes with one more second. */
export function addLoad(
  before: ReadonlyMap<string, readonly number[]>,
  { providers }: Pick<Fleet, 'providers'>,
): ReadonlyMap<string, readonly number[]> {
  return new Map(
    providers.map(({ provider, inFlight, queue }) => [
      provider,
      [...(before.get(provider) ?? []), inFlight + (queue?.waiting ?? 0)].slice(-kept),
    ]),
  );
}
