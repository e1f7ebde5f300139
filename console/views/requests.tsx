import type { LedgerRequest } from '../../shared/contracts/ledger.ts';
import { SelectField, TextField } from '../parts/field.tsx';
import { formatTime } from '../parts/format.ts';
import { addressOf, PagedTable, showFiltered, usePagedList } from '../parts/paged-table.tsx';
import { nameOf } from '../pools/describe.ts';
import { RequestRow, requestTitles } from '../requests/request-table.tsx';
import type { ViewProps } from '../router.ts';
import { fleet } from '../store.ts';
import { RequestView } from './request.tsx';

const rereadMs = 5000;

/** The requests that have ended, as the address filters them (`#/requests?user=ann`), or one (`#/requests/ID`). */
export function RequestsView({ args, query }: ViewProps) {
  const id = args[0] ?? query.get('id');
  if (id !== null) return <RequestView key={id} id={id} />;
  return (
    <>
      <h1>Requests</h1>
      <FilterForm key={`form ${query}`} query={query} />
      <FilteredList key={`${query}`} query={query} />
    </>
  );
}

function FilteredList({ query }: { query: URLSearchParams }) {
  // It has another key for another filter.
  const list = usePagedList<LedgerRequest>(
    (before) => addressOf('/admin/requests', { ...parametersOf(query), before }),
    [],
    rereadMs,
  );
  return (
    <PagedTable
      list={list}
      label="Table of requests"
      class="requests"
      titles={requestTitles}
      row={(request) => <RequestRow key={request.id} request={request} />}
      empty={describeNone(list.since.value, list.next.value !== null, query.size > 0)}
      more="Earlier requests"
    />
  );
}

/** The query of the API; the form's times are in UTC and without a zone. */
export const parametersOf = (query: URLSearchParams): Record<string, string> =>
  Object.fromEntries(
    [...query].map(([name, value]) => [
      name,
      name === 'from' || name === 'to' ? new Date(`${value}Z`).toISOString() : value,
    ]),
  );

/** Why the list is empty, and since when it counts. */
export function describeNone(since: string | null, hasMore: boolean, isFiltered: boolean): string {
  if (since === null) return 'No request has ended yet. Send one in the playground.';
  const counts = `Requests are kept since ${formatTime(since)} UTC.`;
  if (hasMore) return `None in the last seven days that were looked through. ${counts}`;
  return isFiltered ? `No request is like that. ${counts}` : counts;
}

const results = [
  'failed',
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

const all = ['', 'all'] as const;
const namesOf = (names: readonly string[]) => [all, ...names.map((name) => [name, name] as const)];

/** An entered id opens its request. */
function FilterForm({ query }: { query: URLSearchParams }) {
  const of = (name: string) => ({ name, defaultValue: query.get(name) ?? '', autocomplete: 'off' }) as const;
  const chosen = (name: string) => ({ name, selected: query.get(name) ?? '' });
  const providers = fleet.value?.providers.map(({ provider }) => [provider, nameOf(provider)] as const) ?? [];
  return (
    <form class="stacked" onSubmit={(event) => showFiltered(event, 'requests')}>
      <div class="row">
        <TextField label="Request id" {...of('id')} />
        <button type="submit">Show</button>
        {query.size > 0 && <a href="#/requests">Show all</a>}
      </div>
      <details open={query.size > 0}>
        <summary>Filter</summary>
        <div class="row">
          <TextField label="User" {...of('user')} />
          <TextField label="Token" {...of('token')} />
          <SelectField label="Provider" options={[all, ...providers]} {...chosen('provider')} />
          <TextField label="Model" {...of('model')} />
          <SelectField label="Result" options={namesOf(results)} {...chosen('result')} />
          <SelectField label="API" options={namesOf(['chat', 'completions', 'messages'])} {...chosen('api')} />
          <TextField label="Session" {...of('session')} />
          <TextField label="Provider’s request id" {...of('providerRequestId')} />
          <TextField label="From, UTC" type="datetime-local" step={1} {...of('from')} />
          <TextField label="Before, UTC" type="datetime-local" step={1} {...of('to')} />
        </div>
      </details>
    </form>
  );
}
