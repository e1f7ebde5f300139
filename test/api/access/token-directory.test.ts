import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { TokenDirectory } from '../../../api/access/token-directory.js';
import { UserDirectory } from '../../../api/access/user-directory.js';
import { type ActiveToken, createTokenStore } from '../../../db/access/tokens.js';
import { createUserStore } from '../../../db/access/users.js';
import { openDatabase } from '../../../db/database/client.js';
import { digestOf, makeAccessToken } from '../../../shared/access-token.js';
import type { Scope } from '../../../shared/contract.js';
import { openTestDatabase } from '../../support/database.js';
import { userNamed } from '../../support/identities.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';

const { database, url, stop } = await openTestDatabase();

const first = {
  user: { ...userNamed('first'), id: 'made of the name' },
  tokens: [{ token: 'the first token, of any form at all', scopes: ['chat'] as const }],
};
const firstToken = first.tokens[0]?.token ?? '';

describe('TokenDirectory', () => {
  let now = 0;
  const { log } = createRecordingLog();
  const activeToken = (token: string, facts: Partial<ActiveToken> = {}): ActiveToken => ({
    id: `id of ${token}`,
    secretHash: digestOf(token),
    user: userNamed('Zoë'),
    scopes: ['chat'],
    expiresInMs: null,
    ...facts,
  });

  async function load(...active: ActiveToken[]) {
    let rows: Promise<ActiveToken[]> = Promise.resolve(active);
    const markUsed = vi.fn(async (_id: string) => {});
    const tokens = { listActive: () => rows, markUsed };
    const directory = new TokenDirectory({ first, tokens, log, now: () => now });
    await directory.load();
    return {
      directory,
      markUsed,
      reload: (next: ActiveToken[] | Promise<ActiveToken[]>) => {
        rows = Promise.resolve(next);
        return directory.load();
      },
    };
  }

  it('knows the callers of its tokens, and of those in the environment before anything is loaded', async () => {
    const [token, other] = [makeAccessToken(), makeAccessToken()];
    const tokens = { listActive: async () => [], markUsed: async () => {} };
    const early = new TokenDirectory({ first, tokens, log });
    expect(early.check(firstToken)).toEqual({ ...first.user, scopes: ['chat'] });
    expect(early.check(token)).toBeUndefined();

    const writer = activeToken(other, { scopes: ['blogs:write'], user: userNamed('first') });
    const { directory } = await load(activeToken(token), writer);
    expect(directory.check(token)).toEqual({ ...userNamed('Zoë'), scopes: ['chat'] });
    // One of the name is the user of the environment.
    expect(directory.check(other)).toEqual({ ...first.user, scopes: ['blogs:write'] });
    expect(directory.check(makeAccessToken())).toBeUndefined();
  });

  it('refuses nonsense, even if somebody had stored its digest', async () => {
    const nonsense = ['', 'x', '__proto__', `${makeAccessToken().slice(0, -1)}!`, 'x'.repeat(10_000)];
    const { directory } = await load(...nonsense.map((text) => activeToken(text)));
    for (const text of nonsense) expect(directory.check(text)).toBeUndefined();
  });

  it('refuses a token from the moment that it expires, without loading again', async () => {
    const token = makeAccessToken();
    now = 5000;
    const { directory } = await load(activeToken(token, { expiresInMs: 1000 }));
    now = 5999;
    expect(directory.check(token)).toBeDefined();
    now = 6000;
    expect(directory.check(token)).toBeUndefined();
  });

  it('forgets tokens that are gone when it loads again, and none while it cannot', async () => {
    const [one, two] = [makeAccessToken(), makeAccessToken()];
    const { directory, reload } = await load(activeToken(one), activeToken(two));
    await reload([activeToken(two)]);
    expect(directory.check(one)).toBeUndefined();
    await expect(reload(Promise.reject(new Error('away')))).rejects.toThrow('away');
    expect(directory.check(two)).toBeDefined();
    expect(directory.check(one)).toBeUndefined();
  });

  it('records a use once a minute', async () => {
    const token = makeAccessToken();
    const { directory, markUsed, reload } = await load(activeToken(token));
    const use = async (times: number) => {
      for (let n = 0; n < times; n += 1) expect(directory.check(token)).toBeDefined();
      // The one before has been recorded.
      await Promise.resolve();
    };
    await use(100);
    await reload([activeToken(token)]);
    now += 59_999;
    await use(100);
    expect(markUsed.mock.calls).toEqual([[`id of ${token}`]]);
    now += 1;
    await use(100);
    expect(markUsed).toHaveBeenCalledTimes(2);
  });
});

describe('TokenDirectory, with the database', () => {
  const { log, text } = createRecordingLog();
  const otherProcess = openDatabase({ url, poolSize: 1, log });
  afterAll(async () => {
    await otherProcess.close();
    await stop();
  });

  it('follows what another process makes and revokes, and works when the database closes', async () => {
    const tokens = createTokenStore(database);
    const directory = new TokenDirectory({ first, tokens, log });
    const users = createUserStore(database);
    const sessions = { load: async () => {} };
    const open = new UserDirectory({ first: undefined, users, tokens: directory, sessions, database, log });
    onTestFinished(() => open.close());
    await open.attempted;
    const make = async (owner: string, scopes: Scope[]) => {
      const token = makeAccessToken();
      const stored = { owner, scopes, expiresAt: undefined, secretHash: digestOf(token) };
      return { token, ...(await createTokenStore(otherProcess).create(stored)) };
    };
    // Well below the time after which it would load by itself.
    const soon = { timeout: 5000, interval: 5 };
    const one = await make('Ida', ['chat']);
    await vi.waitFor(() => expect(directory.check(one.token)).toMatchObject({ name: 'Ida' }), soon);
    await createTokenStore(otherProcess).revoke(one.id);
    await vi.waitFor(() => expect(directory.check(one.token)).toBeUndefined(), soon);

    const [removed, kept] = [await make('Iva', ['chat']), await make('Ina', ['chat'])];
    await vi.waitFor(() => expect(directory.check(kept.token)).toBeDefined(), soon);
    await createUserStore(otherProcess).remove('Iva');
    await vi.waitFor(() => expect(directory.check(removed.token)).toBeUndefined(), soon);
    const used = async () => (await createTokenStore(otherProcess).list()).find(({ id }) => id === kept.id);
    await vi.waitFor(async () => expect((await used())?.lastUsedAt).toEqual(expect.any(String)), patience);

    await database.close();
    expect(directory.check(kept.token)).toMatchObject({ name: 'Ina', scopes: ['chat'] });
    expect(text()).not.toContain(kept.token);
  });
});
