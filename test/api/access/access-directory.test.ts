import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type AccessDirectory } from '../../../api/access/access-directory.js';
import { createSessionStore } from '../../../db/access/sessions.js';
import { type ActiveToken, createTokenStore } from '../../../db/access/tokens.js';
import { createUserStore, type UserDigest } from '../../../db/access/users.js';
import { type Database, openDatabase } from '../../../db/database/client.js';
import { digestOf, makeAccessToken } from '../../../shared/credential-forms.js';
import { directoryOf } from '../../support/access-directory.js';
import { openTestDatabase } from '../../support/database.js';
import { userNamed } from '../../support/identities.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';

const firstToken = 'a first token of any form at all';
const first = {
  user: { ...userNamed('first'), id: 'made of the name' },
  secret: 'the secret: of the first 🎉',
  tokens: [
    { token: firstToken, scopes: ['blogs:write'] as const },
    { token: firstToken, scopes: ['chat'] as const },
  ],
};
const firstCaller = { ...first.user, scopes: ['blogs:write', 'chat'] };

const tokenOf = (token: string, facts: Partial<ActiveToken> = {}): ActiveToken => ({
  id: `id of ${token}`,
  secretHash: digestOf(token),
  user: userNamed('Zoë'),
  scopes: ['chat'],
  expiresInMs: null,
  ...facts,
});

/** Loads these tokens, and others when `active` changes. */
async function loadTokens(...tokens: ActiveToken[]) {
  const clock = { now: 0 };
  const recording = createRecordingLog();
  const store = {
    active: tokens,
    listActive: async () => store.active,
    find: vi.fn(async (_digest: Buffer): Promise<ActiveToken | undefined> => undefined),
    markUsed: vi.fn(async (_id: string) => {}),
  };
  const environment = { first };
  const directory = directoryOf({ environment, tokens: store, now: () => clock.now, log: recording.log });
  onTestFinished(() => directory.close());
  await directory.reload();
  return { directory, store, clock, recording };
}

describe('AccessDirectory, tokens', () => {
  it('before and after a load -> the callers of the environment are known, then those of its tokens', async () => {
    const [token, other] = [makeAccessToken(), makeAccessToken()];
    const early = directoryOf({ environment: { first } });
    expect(early.checkToken(firstToken)).toEqual(firstCaller);
    expect(early.checkToken(token)).toBeUndefined();

    const ofFirst = tokenOf(other, { scopes: ['blogs:write'], user: userNamed('first') });
    const { directory, store } = await loadTokens(tokenOf(token), ofFirst);
    const expected = { ...userNamed('Zoë'), scopes: ['chat'], tokenId: `id of ${token}` };
    expect(directory.checkToken(token)).toEqual(expected);
    expect(await directory.findToken(token)).toEqual(expected);
    // One of the name is the user of the environment.
    expect(directory.checkToken(other)).toMatchObject({ ...first.user, scopes: ['blogs:write'] });
    expect(directory.checkToken(makeAccessToken())).toBeUndefined();
    expect(await directory.findToken(firstToken)).toEqual(firstCaller);
    expect(store.find).not.toHaveBeenCalled();
  });

  it('nonsense, even if its digest were stored -> refused without asking', async () => {
    const nearly = `${makeAccessToken().slice(0, -1)}!`;
    const nonsense = ['', 'x', '__proto__', 'undefined', `${firstToken}x`, nearly, 'x'.repeat(10_000)];
    const { directory, store } = await loadTokens(...nonsense.map((text) => tokenOf(text)));
    for (const text of nonsense) {
      expect(directory.checkToken(text)).toBeUndefined();
      expect(await directory.findToken(text)).toBeUndefined();
    }
    expect(store.find).not.toHaveBeenCalled();
  });

  it('a token that expires -> refused from that moment, without a load', async () => {
    const token = makeAccessToken();
    const { directory, clock } = await loadTokens(tokenOf(token, { expiresInMs: 1000 }));
    clock.now = 999;
    expect(directory.checkToken(token)).toBeDefined();
    clock.now = 1000;
    expect(directory.checkToken(token)).toBeUndefined();
    expect(await directory.findToken(token)).toBeUndefined();
  });

  it('many uses -> recorded once a minute, and a failure to is only logged', async () => {
    const token = makeAccessToken();
    const { directory, store, clock, recording } = await loadTokens(tokenOf(token));
    const use = () => Promise.all(Array.from({ length: 100 }, () => directory.findToken(token)));
    clock.now = 1;
    store.markUsed.mockImplementation(() => Promise.reject(new Error('gone')));
    await use();
    await directory.reload();
    clock.now += 59_999;
    await use();
    expect(store.markUsed.mock.calls).toEqual([[`id of ${token}`]]);
    await vi.waitFor(() => expect(recording.text()).toContain('could not record the use'), patience);
    expect(recording.text()).not.toContain(digestOf(token).toString('base64'));
    clock.now += 60_001;
    await use();
    expect(store.markUsed).toHaveBeenCalledTimes(2);
  });
});

describe('AccessDirectory, loads', () => {
  const user: UserDigest = { ...userNamed('ada'), secretHash: digestOf('a'), role: 'user' };

  it('a part that cannot be loaded -> nothing changes, which is logged once, and it does not count as loaded', async () => {
    const token = makeAccessToken();
    const recording = createRecordingLog();
    const parts = { isAway: true };
    const removedWithin = async () => {
      if (parts.isAway) throw new Error('away');
      return ['removed'];
    };
    const directory = directoryOf({
      users: { digests: async () => [user], removedWithin },
      tokens: {
        listActive: async () => [tokenOf(token)],
        find: async () => undefined,
        markUsed: async () => {},
      },
      log: recording.log,
    });
    onTestFinished(() => directory.close());
    const known = () => [
      directory.loaded,
      directory.checkUser('ada', 'a') !== undefined,
      directory.checkToken(token) !== undefined,
      directory.removedIds.length,
    ];
    await directory.reload();
    await directory.reload();
    expect(known()).toEqual([false, false, false, 0]);
    expect(recording.lines.filter(({ msg }) => msg === 'could not load the users')).toHaveLength(1);
    parts.isAway = false;
    await directory.reload();
    expect(known()).toEqual([true, true, true, 1]);
    parts.isAway = true;
    await directory.reload();
    expect(known()).toEqual([true, true, true, 1]);
    expect(recording.lines.filter(({ msg }) => msg === 'could not load the users')).toHaveLength(2);
  });
});

describe('AccessDirectory, with the database', async () => {
  const { database, url, stop } = await openTestDatabase();
  const { log, text } = createRecordingLog();
  const otherProcess = openDatabase({ url, poolSize: 1, log });
  afterAll(async () => {
    await otherProcess.close();
    await stop();
  });

  /** Longer than any test: what is known here was heard of. */
  const reloadEveryMs = 3_600_000;
  const over = (of: Database): AccessDirectory => {
    const stores = {
      users: createUserStore(of),
      tokens: createTokenStore(of),
      sessions: createSessionStore(of),
    };
    const directory = directoryOf({ environment: { first }, log, ...stores, reloadEveryMs });
    onTestFinished(() => directory.close());
    return directory;
  };
  const users = createUserStore(otherProcess);
  const tokens = createTokenStore(otherProcess);
  const make = async (owner: string) => {
    const token = makeAccessToken();
    const facts = { owner, expiresAt: undefined, secretHash: digestOf(token) };
    return { token, ...(await tokens.create({ ...facts, scopes: ['chat'] })) };
  };

  it('no database -> says so, except to users and tokens of the environment', async () => {
    const away = openDatabase({ url: 'postgres://127.0.0.1:1/x', poolSize: 1, log });
    onTestFinished(() => away.close());
    const directory = over(away);
    await directory.start(away);
    const isUnavailable = { code: 'database_unavailable' };
    await expect(directory.findToken(makeAccessToken())).rejects.toMatchObject(isUnavailable);
    await expect(directory.findSession('key')).rejects.toMatchObject(isUnavailable);
    expect(await directory.findToken(firstToken)).toEqual(firstCaller);
    expect(directory.checkUser('first', first.secret)?.user).toEqual(first.user);
    expect(directory.loaded).toBe(false);
  });

  it('what another process changes -> is known here, and is kept when the database closes', async () => {
    const [here, there] = [over(database), over(otherProcess)];
    await here.start(database);
    const becomes = (check: () => unknown, isThere: boolean) =>
      vi.waitFor(() => expect(check() !== undefined).toBe(isThere), patience);

    const id = (await users.add({ name: 'eve', secretHash: digestOf('a'), role: 'admin' })) ?? '';
    await becomes(() => here.checkUser('eve', 'a'), true);
    const eve = { ...userNamed('eve'), id };
    const signIn = async (secret: string) => {
      const { key } = await there.openSession({ user: eve, secretHash: digestOf(secret) });
      await becomes(() => here.checkSession(key), true);
      return key;
    };
    const ended = await signIn('a');
    await there.closeSession(there.checkSession(ended) ?? { ...eve, scopes: [] });
    await becomes(() => here.checkSession(ended), false);
    const beforeReset = await signIn('a');
    await users.resetSecret('eve', digestOf('b'));
    await becomes(() => here.checkSession(beforeReset), false);
    expect([here.checkUser('eve', 'a'), here.checkUser('eve', 'b')?.user.id]).toEqual([undefined, id]);

    const [revoked, removed, kept] = [await make('Ida'), await make('eve'), await make('Ina')];
    const beforeRemoval = await signIn('b');
    await becomes(() => here.checkToken(kept.token), true);
    await tokens.revoke(revoked.id);
    await becomes(() => here.checkToken(revoked.token), false);
    await users.remove('eve');
    for (const check of [() => here.checkToken(removed.token), () => here.checkSession(beforeRemoval)])
      await becomes(check, false);
    expect(here.hasUser('eve')).toBe(false);
    expect(here.removedIds).toContain(id);

    await database.close();
    await here.reload();
    expect(here.checkToken(kept.token)).toMatchObject({ name: 'Ina', scopes: ['chat'] });
    expect(text()).not.toContain(kept.token);
  });
});
