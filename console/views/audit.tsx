import { useId } from 'preact/hooks';
import type { AuditEntry } from '../../shared/accounts.ts';
import type { AuditAction } from '../../shared/contract.ts';
import { diffSettings } from '../accounts/settings-diff.ts';
import { formatTime } from '../parts/format.ts';
import { ListState } from '../parts/list-state.tsx';
import { addressOf, usePagedList } from '../parts/paged-list.ts';
import { Table } from '../parts/table.tsx';
import type { ViewProps } from '../router.ts';

const actions: Readonly<Record<AuditAction, string>> = {
  'pools.set': 'set a pool',
  'users.add': 'added a user',
  'users.remove': 'removed a user',
  'users.reset': 'gave a new secret',
  'tokens.create': 'made a token',
  'tokens.revoke': 'revoked a token',
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
      <AuditTable entries={list.rows.value ?? []} />
      <ListState list={list} empty="Nothing was done." more="Older" />
    </>
  );
}

function Filter({ query }: { query: URLSearchParams }) {
  const id = useId();
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const given = [...new FormData(event.currentTarget as HTMLFormElement)].map(
      ([name, value]) => [name, String(value).trim()] as const,
    );
    location.hash = addressOf('/audit', Object.fromEntries(given));
  };
  return (
    <form class="row" onSubmit={submit}>
      <span class="field">
        <label for={`${id}-actor`}>By</label>
        <input id={`${id}-actor`} name="actor" defaultValue={query.get('actor') ?? ''} spellcheck={false} />
      </span>
      <span class="field">
        <label for={`${id}-target`}>To</label>
        <input
          id={`${id}-target`}
          name="target"
          placeholder="user or provider"
          defaultValue={query.get('target') ?? ''}
          spellcheck={false}
        />
      </span>
      <span class="field">
        <label for={`${id}-action`}>What</label>
        <select id={`${id}-action`} name="action" value={query.get('action') ?? ''}>
          <option value="">anything</option>
          {Object.entries(actions).map(([action, text]) => (
            <option key={action} value={action}>
              {text}
            </option>
          ))}
        </select>
      </span>
      <button type="submit">Filter</button>
      {query.size > 0 && <a href="#/audit">Show all</a>}
    </form>
  );
}

function AuditTable({ entries }: { entries: readonly AuditEntry[] }) {
  if (entries.length === 0) return null;
  return (
    <Table label="What was done" titles={['When', 'Who', 'What', 'To', 'Change']}>
      {entries.map(({ id, at, actor, action, targetName, before, after }) => (
        <tr key={id}>
          <td>
            <time dateTime={at}>{formatTime(at)}</time>
          </td>
          <td>{actor}</td>
          <td>{actions[action] ?? action}</td>
          <td>{targetName}</td>
          <td>{after !== undefined && <Changes before={before} after={after} />}</td>
        </tr>
      ))}
    </Table>
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
