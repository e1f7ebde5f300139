import type { RecentRequest } from '../../shared/contracts/history.ts';
import { formatDuration } from '../parts/format.ts';

/** When a chat was queued, started, answered and ended: as text, and as a bar as long as `longestMs` is wide. */
export function Timeline({ request, longestMs }: { request: RecentRequest; longestMs: number }) {
  const width = 100 / Math.max(1, longestMs);
  let at = 0;
  const bars = phasesOf(request).map(({ name, ms }) => {
    const x = at;
    at += ms * width;
    return <rect key={name} class={name} x={x.toFixed(2)} y="0" width={(ms * width).toFixed(2)} height="8" />;
  });
  return (
    <>
      {describeTimes(request)}
      <svg class="timeline" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        {bars}
      </svg>
    </>
  );
}

/** The meaning of the bars' colours. */
export function TimelineLegend() {
  return (
    <ul class="row legend" aria-hidden="true">
      {legend.map(([name, text]) => (
        <li key={name}>
          <svg class="timeline" viewBox="0 0 8 8" aria-hidden="true">
            <rect class={name} width="8" height="8" />
          </svg>
          {text}
        </li>
      ))}
    </ul>
  );
}

const legend = [
  ['received', 'admission'],
  ['queued', 'in the queue'],
  ['started', 'at the provider'],
  ['writing', 'reply being written'],
] as const;

type Times = Pick<RecentRequest, 'queuedMs' | 'startedMs' | 'firstTokenMs' | 'endedMs'>;

/** The phases of a chat in their order, in milliseconds; together they are as long as it took. */
export function phasesOf({ queuedMs: queued, startedMs: started, firstTokenMs: writing, endedMs }: Times) {
  const begins = Object.entries({ received: 0, queued, started, writing });
  const known = begins.flatMap(([name, at]) => (at === undefined ? [] : [{ name, at }]));
  return known.map(({ name, at }, n) => ({ name, ms: Math.max(0, (known[n + 1]?.at ?? endedMs) - at) }));
}

/** `queued 2 ms, started 300 ms, first token 900 ms, ended 3.1 s`. */
export function describeTimes({ queuedMs, startedMs, firstTokenMs, endedMs }: Times): string {
  const times = { queued: queuedMs, started: startedMs, 'first token': firstTokenMs, ended: endedMs };
  return Object.entries(times)
    .flatMap(([what, ms]) => (ms === undefined ? [] : `${what} ${formatDuration(ms)}`))
    .join(', ');
}
