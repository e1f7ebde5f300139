import { signal } from '@preact/signals';
import { connection, fleet, newsAt } from '../store.ts';
import { formatDuration, formatTime } from './format.ts';

/** How new is what the page shows. */
export function ConnectionState() {
  const state = connection.value;
  const text = { live: 'live', connecting: 'connecting…', reconnecting: 'reconnecting…' }[state];
  return (
    <p class={`soft connection ${state}`} role="status">
      <span class="dot" aria-hidden="true" />
      {text}
    </p>
  );
}

/** The state of the connection, above every view. */
export function ConnectionBanner() {
  const queue = fleet.value?.queue;
  const isLost = connection.value === 'reconnecting';
  return (
    <div role="alert" class="banners">
      {isLost && <p class="notice banner bad">{describeSilence()}</p>}
      {!isLost && queue?.status === 'failing' && (
        <p class="notice banner bad">
          The queue's store ({queue.store === 'postgres' ? 'PostgreSQL' : 'Redis'}) is unavailable
          {queue.detail && `: ${queue.detail}`}. Workers are unknown until it is back; chats are refused.
        </p>
      )}
    </div>
  );
}

/** Says the time, not an age: an alert that changes each second would be read out each second. */
function describeSilence(): string {
  if (newsAt.value === 0) return 'The server does not answer. Trying again…';
  return `No news from the server since ${formatTime(newsAt.value)}. What is shown may be out of date. Trying again…`;
}

/** The time, in milliseconds since 1970, once a second. */
const now = signal(Date.now());

/** Updates the ages on the page each second. To be called once, when the page begins. */
export function startClock(): void {
  setInterval(() => {
    now.value = Date.now();
  }, 1000);
}

/** `since` as an age that goes on. */
export const Age = ({ since }: { since: string }) => (
  <Seconds at={since} ms={now.value - Date.parse(since)} />
);

/** How long it is until then. */
export const TimeLeft = ({ until }: { until: string }) => (
  <Seconds at={until} ms={Date.parse(until) - now.value} />
);

function Seconds({ at, ms }: { at: string; ms: number }) {
  const whole = Math.max(0, Math.round(ms / 1000) * 1000);
  return (
    <time dateTime={at} title={`${formatTime(at)} UTC`}>
      {whole === 0 ? '0 s' : formatDuration(whole)}
    </time>
  );
}
