import { ErrorNotice, SelectField, TextField } from '../parts/field.tsx';
import { useFollowed } from '../parts/followed.ts';
import { showFiltered } from '../parts/paged-table.tsx';
import { nameOf } from '../pools/describe.ts';
import { openRequests, type RequestFilter } from '../requests/recent.ts';
import { RequestTable } from '../requests/request-table.tsx';
import { TimelineLegend } from '../requests/timeline.tsx';
import type { ViewProps } from '../router.ts';
import { fleet, isStale } from '../store.ts';

/** The last chats that ended, followed as they end; `#/requests?code=timeout` shows some of them. */
export function RequestsView({ query }: ViewProps) {
  const of = (name: string) => query.get(name)?.trim() ?? '';
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
  // It has another key for another filter.
  const { known, error } = useFollowed(() => openRequests(filter), []);
  const list = known.value;
  return (
    <>
      <ErrorNotice error={error.value} />
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
  if (shown > 0) return shown === 1 ? 'One ended request' : `The last ${shown} ended requests`;
  return isFiltered ? 'None of the last 1,000 ended requests matches' : 'No request has ended yet';
}

const codes = [
  'ok',
  'truncated',
  'blocked',
  'cancelled',
  'overloaded',
  'timeout',
  'provider_unavailable',
  'provider_error',
  'provider_timeout',
  'provider_rate_limited',
  'provider_rejected',
  'content_blocked',
  'context_length_exceeded',
  'invalid_request',
  'queue_unavailable',
  'rate_limited',
  'internal',
];

function FilterForm({ filter }: { filter: RequestFilter }) {
  const providers = fleet.value?.providers ?? [];
  return (
    <form class="row filters" onSubmit={(event) => showFiltered(event, 'requests')}>
      <SelectField
        label="Provider"
        name="provider"
        options={[['', 'all'], ...providers.map(({ provider }) => [provider, nameOf(provider)] as const)]}
        selected={filter.provider}
      />
      <SelectField
        label="Result"
        name="code"
        options={[['', 'all'], ...codes.map((code) => [code, code] as const)]}
        selected={filter.code}
      />
      <TextField label="User" name="user" defaultValue={filter.user} autocomplete="off" />
      <TextField label="Request id" name="id" defaultValue={filter.id} autocomplete="off" />
      <button type="submit">Show</button>
    </form>
  );
}
