import type { FleetBreaker, FleetProvider, FleetWorker } from '../../shared/contracts/fleet-contract.ts';
import { Age } from '../parts/connection.tsx';
import { formatTime } from '../parts/format.ts';
import { describeBreaker, describeFailed, toneOfBreaker } from './describe.ts';

interface TroublesProps {
  pool: FleetProvider;
  /** For the board: one breaker, and no chats. */
  isShort?: boolean;
}

/** The troubles of a provider: silent workers, open breakers, holds, users that are refused, and failed chats. */
export function PoolTroubles({ pool: { workers, chats }, isShort = false }: TroublesProps) {
  const failed = isShort ? 0 : (chats?.failed ?? 0);
  const maxLines = isShort ? 1 : 5;
  const breakers = openBreakersOf(workers);
  const live = workers.filter(({ state }) => state !== 'silent');
  const silent = workers.length - live.length;
  if (breakers.length === 0 && failed === 0 && silent === 0) return null;
  return (
    <ul class="troubles">
      {silent > 0 && (
        <li>
          <span class="bad">silent</span> {silent} of {workers.length} workers
        </li>
      )}
      {breakers.slice(0, maxLines).map(({ target, text, tone, workers: count, nextProbeAt, idleSince }) => (
        <li key={`${target} ${text}`}>
          <span class={tone}>{text}</span> for {target}{' '}
          <span class="soft">
            {isShort && breakers.length > 1 && `and ${breakers.length - 1} more`}
            {!isShort && `at ${count} of ${live.length} workers`}
            {!isShort && nextProbeAt && `, next probe ${formatTime(nextProbeAt)}`}
            {idleSince && ', no call for '}
            {idleSince && <Age since={idleSince} />}
          </span>
        </li>
      ))}
      {!isShort && breakers.length > maxLines && <li class="soft">and {breakers.length - maxLines} more</li>}
      {chats && failed > 0 && (
        <li>
          <span class="bad">{describeFailed(chats)}</span>{' '}
          <span class="soft">
            the last of {chats.failed} failed chats in five minutes, of {chats.ended}
          </span>
        </li>
      )}
    </ul>
  );
}

/**
 * Breakers and holds of live workers by model and state, each with the number of its workers, the earliest probe
 * and the longest wait for a call; the account's first, then the models', those that wait for a call, and users'.
 */
export function openBreakersOf(workers: readonly FleetWorker[]) {
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
    const users = new Set(same.map(({ user }) => user)).size;
    const described = { text: describeBreaker(first, users), tone: toneOfBreaker(first) };
    return [{ target, ...described, workers: same.length, nextProbeAt, idleSince }];
  });
}

/** Entries of all users before those of one, the account before its models, and a wait for a call last. */
const worstFirst = (a: FleetBreaker, b: FleetBreaker): number =>
  Number(a.user !== undefined) - Number(b.user !== undefined) ||
  Number(b.model === null) - Number(a.model === null) ||
  Number(a.state === 'half-open') - Number(b.state === 'half-open');
