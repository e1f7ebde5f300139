import { useEffect, useState } from 'preact/hooks';
import { ErrorNotice } from '../parts/notice.tsx';
import { nameOf } from '../pools/describe.ts';
import { RecentChats, type RequestFilter } from '../requests/recent.ts';
import { RequestTable } from '../requests/request-table.tsx';
import { TimelineLegend } from '../requests/timeline.tsx';
import type { ViewProps } from '../router.ts';
import { fleet, isStale } from '../store.ts';

/** The last chats that ended, followed as they end; `#/requests?code=timeout` shows some of them. */
export function RequestsView({ query }: ViewProps) {
  const of = (name: string) => query.get(name) ?? '';
  const filter = { id: of('id'), provider: of('provider'), code: of('code'), user: of('user') };
  const key = JSON.stringify(filter);
  return (
    <>
      <h1>Requests</h1>
      <FilterForm key={`form ${key}`} filter={filter} />
      <FilteredList key={key} filter={filter} />
    </>
  );
}

function FilteredList({ filter }: { filter: RequestFilter }) {
  const [chats, setChats] = useState<RecentChats | undefined>(undefined);
  useEffect(() => {
    const followed = new RecentChats(filter);
    setChats(followed);
    return () => followed.stop();
    // The list has another key for another filter.
  }, []);
  const list = chats?.list.value;
  return (
    <>
      <ErrorNotice error={chats?.error.value} />
      {list && (
        <div class={isStale.value ? 'stale' : ''}>
          <p class="soft">
            {describeList(list.requests.length, Object.values(filter).some(Boolean))} since the start of{' '}
            {list.processes === 1 ? 'this API process' : `${list.processes} API processes`}. A restart of the
            API loses them.
            {list.isPartial && ' The other API processes cannot be asked: the queue’s store is down.'}
          </p>
          {list.requests.length > 0 && <TimelineLegend />}
          {list.requests.length > 0 && <RequestTable requests={list.requests} />}
        </div>
      )}
    </>
  );
}

function describeList(shown: number, isFiltered: boolean): string {
  if (shown > 0) return shown === 1 ? 'One request that ended' : `The last ${shown} requests that ended`;
  return isFiltered ? 'None of the last 1,000 requests matches, of those that ended' : 'No request has ended';
}

const codes = [
  ...['ok', 'truncated', 'blocked', 'cancelled', 'overloaded', 'timeout', 'provider_unavailable'],
  ...['provider_error', 'provider_timeout', 'provider_rate_limited', 'provider_rejected', 'content_blocked'],
  ...['context_length_exceeded', 'invalid_request', 'queue_unavailable', 'rate_limited', 'internal'],
];

function FilterForm({ filter }: { filter: RequestFilter }) {
  const show = (event: Event) => {
    event.preventDefault();
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(event.currentTarget as HTMLFormElement))
      if (typeof value === 'string' && value.trim() !== '') query.set(name, value.trim());
    location.hash = query.size === 0 ? '#/requests' : `#/requests?${query}`;
  };
  return (
    <form class="row filters" onSubmit={show}>
      <label>
        Provider{' '}
        <select name="provider">
          <option value="">all</option>
          {fleet.value?.providers.map(({ provider }) => (
            <option key={provider} value={provider} selected={provider === filter.provider}>
              {nameOf(provider)}
            </option>
          ))}
        </select>
      </label>
      <label>
        Result{' '}
        <select name="code">
          <option value="">all</option>
          {codes.map((code) => (
            <option key={code} value={code} selected={code === filter.code}>
              {code}
            </option>
          ))}
        </select>
      </label>
      <label>
        User <input name="user" defaultValue={filter.user} autocomplete="off" spellcheck={false} />
      </label>
      <label>
        Request id <input name="id" defaultValue={filter.id} autocomplete="off" spellcheck={false} />
      </label>
      <button type="submit">Show</button>
    </form>
  );
}
