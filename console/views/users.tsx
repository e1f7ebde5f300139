import { useEffect, useRef, useState } from 'preact/hooks';
import type { UserInfo, UserInput, UserSecret } from '../../shared/contracts/accounts.ts';
import type { UserRole } from '../../shared/contracts/contract.ts';
import { call } from '../api.ts';
import { ConfirmButton, CopyButton } from '../parts/confirm-button.tsx';
import { ErrorNotice, SelectField, TextField } from '../parts/field.tsx';
import { formatTime } from '../parts/format.ts';
import { addressOf, PagedTable, usePagedList } from '../parts/paged-table.tsx';
import type { ViewProps } from '../router.ts';
import { session } from '../session/session.ts';

/** The users of the database: added, given new secrets, removed; at `#/users?name=ann` from that one on. */
export function UsersView({ query }: ViewProps) {
  // The API continues after a name, which need not be that of a user.
  const before = query.get('name')?.slice(0, -1);
  const list = usePagedList<UserInfo>((after = before) => addressOf('/admin/users', { after }), [before]);
  const { change, outcome } = useChanges(list);
  return (
    <>
      <h1>Users</h1>
      <p class="soft">
        Users with the role admin may sign in here. The secrets of those that the environment names are
        changed there. A new secret signs its user out at once, so your own is made by another operator, or by{' '}
        <code>bin/quillgate users reset {session.value?.user.name ?? 'NAME'}</code>.
      </p>
      <NewUser onCreate={(user) => change(() => makeSecret('The secret', '/admin/users', user))} />
      {outcome}
      {before !== undefined && (
        <p>
          <a href="#/users">Show all users</a>
        </p>
      )}
      <PagedTable
        list={list}
        label="Users"
        titles={['Name', 'Role', 'Secret', 'Created', 'Actions']}
        row={(user) => <UserRow key={user.id} user={user} onChange={change} />}
        empty="There are no users."
        more="More users"
      />
    </>
  );
}

/** Makes the secret of a user, who is new with `json`. */
async function makeSecret(what: string, path: string, json?: UserInput): Promise<Told> {
  const { body } = await call<UserSecret>(path, { method: 'POST', json });
  return { what: `${what} of ${body.name}`, secret: body.secret };
}

function NewUser({ onCreate }: { onCreate(user: UserInput): Promise<void> }) {
  const [name, setName] = useState('');
  const [role, setRole] = useState<UserRole>('user');
  const submit = async (event: Event) => {
    event.preventDefault();
    await onCreate({ name, role });
    setName('');
  };
  return (
    <form class="row" onSubmit={(event) => void submit(event)}>
      <TextField
        label="New user"
        value={name}
        required
        maxLength={128}
        autocomplete="off"
        onInput={({ currentTarget }) => setName(currentTarget.value)}
      />
      <SelectField
        label="Role"
        value={role}
        options={[
          ['user', 'user'],
          ['admin', 'admin'],
        ]}
        onChange={({ currentTarget }) => setRole(currentTarget.value as UserRole)}
      />
      <button type="submit" class="primary">
        Add user
      </button>
    </form>
  );
}

interface RowProps {
  user: UserInfo;
  onChange(make: () => Promise<Told | undefined>): Promise<void>;
}

function UserRow({ user, onChange }: RowProps) {
  const { name, role, hasSecret, createdAt, suspendedAt, source } = user;
  const address = `/admin/users/${encodeURIComponent(name)}`;
  return (
    <tr>
      <td>
        <a href={`#/audit?${new URLSearchParams({ target: name })}`}>{name}</a>
      </td>
      <td>{role}</td>
      <td>
        {hasSecret ? 'yes' : 'only tokens'}
        {source && <span class="soft"> environment</span>}
        {suspendedAt && <span class="bad"> suspended</span>}
      </td>
      <td>{source === 'environment' ? '–' : <time dateTime={createdAt}>{formatTime(createdAt)}</time>}</td>
      <td class="row">
        {/* Not for oneself: either ends the user's sessions, and with them the page that would show the secret. */}
        {source !== 'environment' && name !== session.value?.user.name && (
          <>
            <ConfirmButton
              label="New secret"
              of={`for ${name}`}
              question={`Replace the secret of ${name}, and sign ${name} out everywhere?`}
              onConfirm={() => onChange(() => makeSecret('The new secret', `${address}/secret`))}
            />
            <ConfirmButton
              label={suspendedAt ? 'Resume' : 'Suspend'}
              of={name}
              question={
                suspendedAt
                  ? `Let ${name} in again, with the same secret and tokens?`
                  : `Refuse all requests of ${name}, and cancel the running and stored chats?`
              }
              onConfirm={() => onChange(() => send(suspendedAt ? 'DELETE' : 'PUT', `${address}/suspension`))}
            />
            <ConfirmButton
              label="Remove"
              of={name}
              question={`Remove ${name}, with all tokens and sessions?`}
              onConfirm={() => onChange(() => send('DELETE', address))}
            />
          </>
        )}
      </td>
    </tr>
  );
}

/** A secret that the server has shown once and cannot show again. */
export interface Told {
  /** Such as `The secret of ann`. */
  readonly what: string;
  readonly secret: string;
}

/** A change that the server answers without a body. */
export async function send(method: 'PUT' | 'DELETE', path: string): Promise<undefined> {
  await call(path, { method });
}

/** Changes the items of a list and reads it again; `outcome` shows a failure, or a new secret. */
export function useChanges(list: { load(): Promise<void> }) {
  const [told, setTold] = useState<Told>();
  const [error, setError] = useState<unknown>();
  const change = async (make: () => Promise<Told | undefined>) => {
    setError(undefined);
    try {
      const secret = await make();
      if (secret) setTold(secret);
      await list.load();
    } catch (failure) {
      setError(failure);
    }
  };
  const outcome = (
    <>
      <ErrorNotice error={error} />
      {told && <SecretNotice told={told} onDone={() => setTold(undefined)} />}
    </>
  );
  return { change, outcome };
}

function SecretNotice({ told, onDone }: { told: Told; onDone(): void }) {
  const notice = useRef<HTMLElement>(null);
  useEffect(() => notice.current?.focus(), [told]);
  return (
    <section class="notice" aria-label={told.what} tabIndex={-1} ref={notice}>
      <p>
        <strong>{told.what}</strong>, which is not shown again:
      </p>
      <pre>
        <code>{told.secret}</code>
      </pre>
      <div class="row">
        <CopyButton text={told.secret} />
        <button type="button" onClick={onDone}>
          Done
        </button>
      </div>
    </section>
  );
}
