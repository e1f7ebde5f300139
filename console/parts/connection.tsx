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
  return `No news from the server since ${formatTime(new Date(newsAt.value).toISOString())}. What is shown may be out of date. Trying again…`;
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
export function Age({ since }: { since: string }) {
  const ms = Math.max(0, Math.round((now.value - Date.parse(since)) / 1000) * 1000);
  return (
    <time dateTime={since} title={formatTime(since)}>
      {ms < 1000 ? '0 s' : formatDuration(ms)}
    </time>
  );
}
