import { afterAll, describe, expect, it, vi } from 'vitest';
import { createTokenAuthenticator } from '../../../api/access/token-authenticator.js';
import { createTokenStore, type TokenStore } from '../../../db/access/tokens.js';
import { openDatabase } from '../../../db/database/client.js';
import { digestOf, makeAccessToken } from '../../../shared/access-token.js';
import type { Scope } from '../../../shared/contract.js';
import { openTestDatabase } from '../../support/database.js';
import { userNamed } from '../../support/identities.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';

const { database, url, stop } = await openTestDatabase();

const firstToken = 'a first token of any form, 32 long';
const scopes: readonly Scope[] = ['blogs:write', 'blogs:read'];
const first = { tokens: [{ token: firstToken, scopes }], user: userNamed('editor') };
const firstCaller = { ...first.user, scopes };

/** A store that nobody may ask. */
const untouchable: TokenStore = {
  create: () => Promise.reject(new Error('asked')),
  find: () => Promise.reject(new Error('asked')),
  listActive: () => Promise.reject(new Error('asked')),
  markUsed: () => Promise.reject(new Error('asked')),
  list: () => Promise.reject(new Error('asked')),
  listNewest: () => Promise.reject(new Error('asked')),
  revoke: () => Promise.reject(new Error('asked')),
};

describe('createTokenAuthenticator, without the database', () => {
  const { log } = createRecordingLog();
  const check = createTokenAuthenticator({ first, tokens: untouchable, log });

  it('knows the first token', async () => {
    expect(await check(firstToken)).toEqual(firstCaller);
  });

  it('knows the first user by each token of the environment, with its scopes', async () => {
    const chat = { token: 'another first token, for chat alone', scopes: ['chat'] as const };
    const both = createTokenAuthenticator({
      first: { ...first, tokens: [...first.tokens, chat, { token: undefined, scopes: ['admin'] }] },
      tokens: untouchable,
      log,
    });
    expect(await both(firstToken)).toEqual(firstCaller);
    expect(await both(chat.token)).toEqual({ ...first.user, scopes: ['chat'] });
    expect(await both('undefined')).toBeUndefined();
    const same = { ...first, tokens: [...first.tokens, { ...chat, token: firstToken }] };
    const one = createTokenAuthenticator({ first: same, tokens: untouchable, log });
    expect(await one(firstToken)).toEqual({ ...first.user, scopes: [...scopes, 'chat'] });
  });

  it('refuses nonsense', async () => {
    const nearly = `${makeAccessToken().slice(0, -1)}!`;
    for (const token of ['', 'x', `${firstToken}x`, firstToken.slice(1), nearly, 'x'.repeat(10_000)])
      expect(await check(token)).toBeUndefined();
  });

  it('takes nothing for the first token when there is none', async () => {
    const withoutFirst = createTokenAuthenticator({ first: undefined, tokens: untouchable, log });
    for (const token of ['', 'undefined', firstToken]) expect(await withoutFirst(token)).toBeUndefined();
  });

  it('takes no other token for the one that was looked up', async () => {
    const grant = {
      id: 'id',
      secretHash: digestOf('other'),
      user: userNamed('x'),
      scopes: [],
      usedRecently: true,
    };
    const tokens = { ...untouchable, find: async () => grant };
    expect(await createTokenAuthenticator({ first, tokens, log })(makeAccessToken())).toBeUndefined();
  });

  it('records a burst of uses once, and only logs a failure to record it', async () => {
    const token = makeAccessToken();
    const grant = {
      id: 'i',
      secretHash: digestOf(token),
      user: userNamed('x'),
      scopes: [],
      usedRecently: false,
    };
    const noting = Promise.withResolvers<void>();
    const markUsed = vi.fn(() => noting.promise);
    const recording = createRecordingLog();
    const tokens = { find: async () => grant, markUsed };
    const checkToken = createTokenAuthenticator({ first, tokens, log: recording.log });

    await Promise.all([checkToken(token), checkToken(token), checkToken(token)]);
    expect(markUsed).toHaveBeenCalledTimes(1);
    noting.reject(new Error('gone'));
    await vi.waitFor(() => expect(recording.lines).toHaveLength(1), patience);
    expect(recording.text()).not.toContain(token);
    expect(await checkToken(token)).toEqual({ ...userNamed('x'), scopes: [] });
    expect(markUsed).toHaveBeenCalledTimes(2);
  });

  it('does not record a use that was recorded within the minute', async () => {
    const token = makeAccessToken();
    const grant = {
      id: 'i',
      secretHash: digestOf(token),
      user: userNamed('x'),
      scopes: [],
      usedRecently: true,
    };
    const tokens = { ...untouchable, find: async () => grant };
    const recording = createRecordingLog();
    expect(await createTokenAuthenticator({ first, tokens, log: recording.log })(token)).toBeDefined();
    expect(recording.lines).toEqual([]);
  });
});

describe('createTokenAuthenticator, with the database', () => {
  const recording = createRecordingLog();
  const otherProcess = openDatabase({ url, poolSize: 1, log: recording.log });
  afterAll(async () => {
    await otherProcess.close();
    await stop();
  });

  const createToken = async (facts: { owner?: string; scopes?: Scope[]; expiresAt?: Date } = {}) => {
    const token = makeAccessToken();
    const { owner = 'Zoë', scopes = ['blogs:read'], expiresAt } = facts;
    const stored = { owner, scopes, expiresAt, secretHash: digestOf(token) };
    const { id } = await createTokenStore(database).create(stored);
    return { token, id };
  };
  const createCheck = () =>
    createTokenAuthenticator({ first, tokens: createTokenStore(database), log: recording.log });

  it('knows a token that was made, by its owner and scopes', async () => {
    const check = createCheck();
    const { token } = await createToken({ scopes: ['chat', 'blogs:write'] });
    expect(await check(token)).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'Zoë',
      createdAt: expect.any(Date),
      scopes: ['chat', 'blogs:write'],
    });
    expect(await check(firstToken)).toEqual(firstCaller);
    expect(await check(makeAccessToken())).toBeUndefined();
  });

  it("takes tokens in the name of the first user for that user's", async () => {
    const { token } = await createToken({ owner: first.user.name });
    expect(await createCheck()(token)).toEqual({ ...first.user, scopes: ['blogs:read'] });
  });

  it('refuses an expired token', async () => {
    const { token } = await createToken({ expiresAt: new Date(Date.now() - 1000) });
    expect(await createCheck()(token)).toBeUndefined();
  });

  it('refuses a token at the next request after another process revoked it', async () => {
    const check = createCheck();
    const { token, id } = await createToken();
    expect(await check(token)).toBeDefined();
    expect(await createTokenStore(otherProcess).revoke(id)).toBe(true);
    expect(await check(token)).toBeUndefined();
  });

  it('records when the token was used', async () => {
    const tokens = createTokenStore(database);
    const { token, id } = await createToken();
    const check = createCheck();
    expect(await check(token)).toBeDefined();
    const lastUse = async () => (await tokens.list()).find((info) => info.id === id)?.lastUsedAt;
    await vi.waitFor(async () => expect(await lastUse()).toEqual(expect.any(String)), patience);
  });

  it('says that the database is unavailable, except to the first token', async () => {
    const away = openDatabase({ url: 'postgres://127.0.0.1:1/x', poolSize: 1, log: recording.log });
    const check = createTokenAuthenticator({ first, tokens: createTokenStore(away), log: recording.log });
    await expect(check(makeAccessToken())).rejects.toMatchObject({ code: 'database_unavailable' });
    expect(await check(firstToken)).toEqual(firstCaller);
    await away.close();
  });
});
