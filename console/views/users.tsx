import { useId, useState } from 'preact/hooks';
import type { UserInfo, UserSecret } from '../../shared/accounts.ts';
import type { UserRole } from '../../shared/contract.ts';
import { type Told, useChanges } from '../accounts/secret-notice.tsx';
import { call } from '../api.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { formatTime } from '../parts/format.ts';
import { ListState } from '../parts/list-state.tsx';
import { addressOf, usePagedList } from '../parts/paged-list.ts';
import { Table } from '../parts/table.tsx';
import { session } from '../session/session.ts';

/** The users of the database: added, given new secrets, removed. */
export function UsersView() {
  const list = usePagedList<UserInfo>((after) => addressOf('/admin/users', { after }), []);
  const { change, outcome } = useChanges(list);
  return (
    <>
      <h1>Users</h1>
      <p class="soft">
        Users with the role admin may sign in here. The secrets of those that the environment names are
        changed there. A new secret signs its user out at once, so your own is made by another operator, or by{' '}
        <code>npx quillgate users reset {session.value?.user.name ?? 'NAME'}</code>.
      </p>
      <NewUser onCreate={(name, role) => change(() => create(name, role))} />
      {outcome}
      <UserTable users={list.rows.value ?? []} onChange={change} />
      <ListState list={list} empty="There are no users." more="More users" />
    </>
  );
}

async function create(name: string, role: UserRole): Promise<Told> {
  const { body } = await call<UserSecret>('/admin/users', { method: 'POST', json: { name, role } });
  return { what: `The secret of ${body.name}`, secret: body.secret };
}

const addressOfUser = (name: string): string => `/admin/users/${encodeURIComponent(name)}`;

async function reset(name: string): Promise<Told> {
  const { body } = await call<UserSecret>(`${addressOfUser(name)}/secret`, { method: 'POST' });
  return { what: `The new secret of ${body.name}`, secret: body.secret };
}

async function remove(name: string): Promise<undefined> {
  await call(addressOfUser(name), { method: 'DELETE' });
}

function NewUser({ onCreate }: { onCreate(name: string, role: UserRole): Promise<void> }) {
  const id = useId();
  const [name, setName] = useState('');
  const [role, setRole] = useState<UserRole>('user');
  const submit = async (event: Event) => {
    event.preventDefault();
    await onCreate(name, role);
    setName('');
  };
  return (
    <form class="row" onSubmit={(event) => void submit(event)}>
      <span class="field">
        <label for={`${id}-name`}>New user</label>
        <input
          id={`${id}-name`}
          value={name}
          required
          maxLength={128}
          autocomplete="off"
          spellcheck={false}
          onInput={({ currentTarget }) => setName(currentTarget.value)}
        />
      </span>
      <span class="field">
        <label for={`${id}-role`}>Role</label>
        <select
          id={`${id}-role`}
          value={role}
          onChange={({ currentTarget }) => setRole(currentTarget.value as UserRole)}
        >
          <option value="user">user</option>
          <option value="admin">admin</option>
        </select>
      </span>
      <button type="submit" class="primary">
        Add user
      </button>
    </form>
  );
}

interface TableProps {
  users: readonly UserInfo[];
  onChange(make: () => Promise<Told | undefined>): Promise<void>;
}

function UserTable({ users, onChange }: TableProps) {
  if (users.length === 0) return null;
  return (
    <Table label="Users" titles={['Name', 'Role', 'Secret', 'Created', 'Actions']}>
      {users.map(({ id, name, role, hasSecret, createdAt, source }) => (
        <tr key={id}>
          <td>
            <a href={`#/audit?${new URLSearchParams({ target: name })}`}>{name}</a>
          </td>
          <td>{role}</td>
          <td>
            {hasSecret ? 'yes' : 'only tokens'}
            {source && <span class="soft"> environment</span>}
          </td>
          <td>
            {source === 'environment' ? '–' : <time dateTime={createdAt}>{formatTime(createdAt)}</time>}
          </td>
          <td class="row">
            {source !== 'environment' && name !== session.value?.user.name && (
              <Actions name={name} onChange={onChange} />
            )}
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** Not for oneself: either ends the user's sessions, and with them the page that would show the secret. */
function Actions({ name, onChange }: { name: string; onChange: TableProps['onChange'] }) {
  return (
    <>
      <ConfirmButton
        label="New secret"
        of={`for ${name}`}
        question={`Replace the secret of ${name}, and sign ${name} out everywhere?`}
        onConfirm={() => onChange(() => reset(name))}
      />
      <ConfirmButton
        label="Remove"
        of={name}
        question={`Remove ${name}, with all tokens and sessions?`}
        onConfirm={() => onChange(() => remove(name))}
      />
    </>
  );
}
