import type { AuditAction, AuditEntry } from '../../shared/contracts/accounts.ts';
import { SelectField, TextField } from '../parts/field.tsx';
import { formatTime } from '../parts/format.ts';
import { addressOf, PagedTable, showFiltered, usePagedList } from '../parts/paged-table.tsx';
import type { ViewProps } from '../router.ts';

const actions: Readonly<Record<AuditAction, string>> = {
  'pools.set': 'set a pool',
  'users.add': 'added a user',
  'users.remove': 'removed a user',
  'users.reset': 'gave a new secret',
  'users.suspend': 'suspended a user',
  'users.resume': 'resumed a user',
  'tokens.create': 'made a token',
  'tokens.revoke': 'revoked a token',
  'chats.cancel': 'cancelled a chat',
  'usage.forget': 'forgot whose usage it was',
};

/** Who has done what, newest first; the filter is in the address, `#/audit?actor=ann`. */
export function AuditView({ query }: ViewProps) {
  const filter = query.toString();
  const { actor, target, action } = Object.fromEntries(query);
  const list = usePagedList<AuditEntry>(
    (before) => addressOf('/admin/audit', { before, actor, target, action }),
    [filter],
  );
  return (
    <>
      <h1>Audit</h1>
      <Filter key={filter} query={query} />
      <PagedTable
        list={list}
        label="What was done"
        titles={['When', 'Who', 'What', 'To', 'Change']}
        row={({ id, at, actor: who, action: what, targetName, before, after }) => (
          <tr key={id}>
            <td>
              <time dateTime={at}>{formatTime(at)}</time>
            </td>
            <td>{who}</td>
            <td>{actions[what] ?? what}</td>
            <td>{targetName}</td>
            <td>{after !== undefined && <Changes before={before} after={after} />}</td>
          </tr>
        )}
        empty="Nothing was done."
        more="Older"
      />
    </>
  );
}

function Filter({ query }: { query: URLSearchParams }) {
  const of = (name: string) => query.get(name) ?? '';
  return (
    <form class="row" onSubmit={(event) => showFiltered(event, 'audit')}>
      <TextField label="By" name="actor" defaultValue={of('actor')} />
      <TextField label="To" name="target" placeholder="user or provider" defaultValue={of('target')} />
      <SelectField
        label="What"
        name="action"
        value={of('action')}
        options={[['', 'anything'], ...Object.entries(actions)]}
      />
      <button type="submit">Filter</button>
      {query.size > 0 && <a href="#/audit">Show all</a>}
    </form>
  );
}

/** Each setting from what it was to what it became; of a new user or token what it may do. */
function Changes({ before, after }: { before: unknown; after: unknown }) {
  const changes = diffSettings(before, after);
  if (changes.length === 0) return <span class="soft">nothing</span>;
  return (
    <ul class="changes">
      {changes.map(({ name, before: old, after: now }) => (
        <li key={name}>
          {name}:{' '}
          {before !== undefined && (
            <>
              <del>{old ?? 'not set'}</del> <span aria-hidden="true">→</span>{' '}
            </>
          )}
          <ins>{now ?? 'not set'}</ins>
        </li>
      ))}
    </ul>
  );
}

/** The differences between two sets of settings, by name. */
export function diffSettings(before: unknown, after: unknown) {
  const [old, now] = [fieldsOf(before), fieldsOf(after)];
  const names = [...new Set([...Object.keys(old), ...Object.keys(now)])].sort();
  return names
    .map((name) => ({ name, before: textOf(old[name]), after: textOf(now[name]) }))
    .filter((change) => change.before !== change.after);
}

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

/** Members in their order do not matter. */
function textOf(value: unknown): string | undefined {
  if (value === undefined || typeof value === 'string') return value;
  return JSON.stringify(value, (_name, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
