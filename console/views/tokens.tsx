import { useState } from 'preact/hooks';
import type { NewToken, TokenInfo, TokenInput } from '../../shared/contracts/accounts.ts';
import type { Scope } from '../../shared/contracts/contract.ts';
import { call } from '../api.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { type OptionTexts, SelectField, TextField } from '../parts/field.tsx';
import { formatTime } from '../parts/format.ts';
import { addressOf, PagedTable, usePagedList } from '../parts/paged-table.tsx';
import { session } from '../session/session.ts';
import { send, type Told, useChanges } from './users.tsx';

/** The permission of each scope, in the order of the form. */
const scopes: Readonly<Record<Scope, string>> = {
  chat: 'chat, as an OpenAI-compatible API key',
  'blogs:write': 'write posts, and see drafts',
  'blogs:read': 'read posts where that needs a token',
  admin: 'everything that operators can do',
};
const lifetimes: OptionTexts = [
  ['1', 'a day'],
  ['7', 'a week'],
  ['30', '30 days'],
  ['90', '90 days'],
  ['365', 'a year'],
  ['null', 'never'],
];

/** The access tokens: made and revoked. */
export function TokensView() {
  const list = usePagedList<TokenInfo>((before) => addressOf('/admin/tokens', { before }), []);
  const { change, outcome } = useChanges(list);
  return (
    <>
      <h1>Access tokens</h1>
      <NewTokenForm onCreate={(input) => change(() => create(input))} />
      {outcome}
      <PagedTable
        list={list}
        label="Access tokens"
        titles={['Name', 'User', 'Scopes', 'Created', 'Expires', 'Last used', 'Actions']}
        row={(token) => (
          <TokenRow
            key={token.id}
            token={token}
            onRevoke={() => change(() => send('DELETE', `/admin/tokens/${token.id}`))}
          />
        )}
        empty="There are no access tokens."
        more="Older tokens"
      />
    </>
  );
}

async function create(json: TokenInput): Promise<Told> {
  const { body } = await call<NewToken>('/admin/tokens', { method: 'POST', json });
  return { what: `The token of ${body.info.owner} for ${body.info.scopes.join(', ')}`, secret: body.token };
}

function NewTokenForm({ onCreate }: { onCreate(input: TokenInput): Promise<void> }) {
  const [owner, setOwner] = useState(session.value?.user.name ?? '');
  const [name, setName] = useState('');
  const [chosen, setChosen] = useState<readonly Scope[]>(['chat']);
  const [expiresInDays, setExpires] = useState<number | null>(90);
  const toggle = (scope: Scope) =>
    setChosen(chosen.includes(scope) ? chosen.filter((one) => one !== scope) : [...chosen, scope]);
  return (
    <form
      class="stacked"
      onSubmit={(event) => {
        event.preventDefault();
        void onCreate({
          ...(name.trim() && { name: name.trim() }),
          owner,
          scopes: [...chosen],
          expiresInDays,
        });
      }}
    >
      <div class="row">
        <TextField
          label="User"
          value={owner}
          required
          maxLength={128}
          autocomplete="off"
          onInput={({ currentTarget }) => setOwner(currentTarget.value)}
        />
        <TextField
          label="Name"
          value={name}
          placeholder="what it is for"
          maxLength={64}
          autocomplete="off"
          onInput={({ currentTarget }) => setName(currentTarget.value)}
        />
        <SelectField
          label="Expires after"
          value={String(expiresInDays)}
          options={lifetimes}
          onChange={({ currentTarget: { value } }) => setExpires(value === 'null' ? null : Number(value))}
        />
      </div>
      <fieldset>
        <legend>What it allows</legend>
        {(Object.keys(scopes) as Scope[]).map((scope) => (
          <label key={scope} class="field">
            <input type="checkbox" checked={chosen.includes(scope)} onChange={() => toggle(scope)} />
            <span>
              <code>{scope}</code> {scopes[scope]}
            </span>
          </label>
        ))}
      </fieldset>
      <div class="row">
        <button type="submit" class="primary" disabled={chosen.length === 0}>
          Make a token
        </button>
      </div>
    </form>
  );
}

function TokenRow({ token, onRevoke }: { token: TokenInfo; onRevoke(): Promise<void> }) {
  const { owner, createdAt, expiresAt, lastUsedAt, revokedAt } = token;
  const isExpired = expiresAt !== null && Date.parse(expiresAt) <= Date.now();
  const names = token.scopes.join(', ');
  return (
    <tr class={revokedAt !== null || isExpired ? 'soft' : ''}>
      <td>{token.name ?? <span class="soft">none</span>}</td>
      <td>
        <a href={`#/audit?${new URLSearchParams({ target: owner })}`}>{owner}</a>
      </td>
      <td>{names}</td>
      <td>{formatTime(createdAt)}</td>
      <td>{expiresAt === null ? 'never' : formatTime(expiresAt)}</td>
      <td>{lastUsedAt === null ? 'never' : formatTime(lastUsedAt)}</td>
      <td>
        {revokedAt !== null && `revoked ${formatTime(revokedAt)}`}
        {revokedAt === null && isExpired && 'expired'}
        {revokedAt === null && !isExpired && (
          <ConfirmButton
            label="Revoke"
            of={`the token of ${owner} for ${names}`}
            question={`Revoke this token of ${owner}? This cannot be undone.`}
            onConfirm={onRevoke}
          />
        )}
      </td>
    </tr>
  );
}
