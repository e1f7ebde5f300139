import type { FleetProvider } from '../../shared/fleet-contract.ts';
import { Age } from '../parts/connection.tsx';
import { formatTime } from '../parts/format.ts';
import { openBreakersOf } from './open-breakers.ts';

/** Callers may name any model, and each can have a breaker. */
const maxLines = 5;

/** What is wrong at a provider: silent workers, open breakers, cooldowns, and the last error while calls still fail with it. */
export function PoolTroubles({ pool: { workers } }: { pool: FleetProvider }) {
  const breakers = openBreakersOf(workers);
  const live = workers.filter(({ state }) => state !== 'silent');
  const failing = live.flatMap(({ calls, lastError }) =>
    lastError && calls && calls.errorRate + calls.rateLimitRate > 0 ? [lastError] : [],
  );
  const [last] = failing.toSorted((a, b) => b.at.localeCompare(a.at));
  const silent = workers.length - live.length;
  if (breakers.length === 0 && last === undefined && silent === 0) return null;
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
            at {count} of {live.length} workers
            {nextProbeAt && `, next probe ${formatTime(nextProbeAt)}`}
            {idleSince && ', no call for '}
            {idleSince && <Age since={idleSince} />}
          </span>
        </li>
      ))}
      {breakers.length > maxLines && <li class="soft">and {breakers.length - maxLines} more</li>}
      {last && (
        <li>
          Last error <span class="bad">{last.code.replaceAll('_', ' ')}</span>{' '}
          <span class="soft">
            <Age since={last.at} /> ago; calls have failed like this for <Age since={last.since} />
          </span>
        </li>
      )}
    </ul>
  );
}
