import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { createTokenStore, type WriteToken } from '../../../db/access/tokens.js';
import { createUserStore } from '../../../db/access/users.js';
import type { Database } from '../../../db/database/client.js';
import { eq, sql } from '../../../db/database/drizzle.js';
import { PostStore } from '../../../db/posts/post-store.js';
import { tokens as table } from '../../../db/schema.js';
import type { Post } from '../../../shared/contracts/contract.js';
import { digestOf, makeAccessToken } from '../../../shared/credential-forms.js';
import { openTestDatabase } from '../../support/database.js';
import { userNamed } from '../../support/identities.js';
import { fields } from '../post-stores.js';

const { database, stop } = await openTestDatabase();
afterAll(() => stop());

const tokens = createTokenStore(database);
const counted = { statements: 0 };
const count = (statements: Pick<Database, 'run'>): Pick<Database, 'run'> => ({
  run: (...args) => {
    counted.statements++;
    return statements.run(...args);
  },
});
const store = new PostStore({
  ...database,
  ...count(database),
  withSharedDeadline: () => count(database.withSharedDeadline()),
});

const refused = new Error('refused');
const makeToken = async (owner = 'Wanda'): Promise<WriteToken> => {
  const secretHash = digestOf(makeAccessToken());
  const { id } = await tokens.create({ owner, scopes: ['blogs:write'], expiresAt: undefined, secretHash });
  const refuse = () => {
    throw refused;
  };
  return { id, refuse };
};
const request = (key: string) => ({ user: userNamed('Wanda'), key, hash: digestOf('{}') });

type Write = (token: WriteToken, post: Post) => Promise<unknown>;
const writes: Record<string, Write> = {
  create: (token) => store.create(fields({ content: 'New' }), undefined, token),
  replace: (token, { id }) => store.replace(id, fields({ content: 'New' }), { token }),
  'replace of a version': (token, post) =>
    store.replace(post.id, fields({ content: 'New' }), { token, expected: [post] }),
  patch: (token, { id }) => store.patch(id, { content: 'New' }, { token }),
  remove: (token, { id }) => store.remove(id, { token }),
};

const ends: Record<string, (token: WriteToken) => Promise<unknown>> = {
  'was revoked': ({ id }) => tokens.revoke(id),
  'has expired': ({ id }) =>
    database.run((db) => db.update(table).set({ expiresAt: sql`now()` }).where(eq(table.id, id))),
  'lost its user, also to another one of the name': async () => {
    const users = createUserStore(database);
    await users.remove('Wanda');
    await users.add({ name: 'Wanda', secretHash: digestOf('another') });
  },
};

describe('a write with an access token', () => {
  let post: Post;
  beforeEach(async () => {
    post = (await store.create(fields())).post;
  });

  it.each(Object.entries(writes))('checks the token in the statement of %s itself', async (_name, write) => {
    const token = await makeToken();
    counted.statements = 0;
    await write(token, post);
    expect(counted.statements).toBe(1);
  });

  describe.each(Object.entries(ends))('that %s', (_end, end) => {
    it.each(Object.entries(writes))('is refused: %s', async (_name, write) => {
      const token = await makeToken();
      const before = await store.list({ drafts: true, limit: 200 });
      await end(token);
      await expect(write(token, post)).rejects.toBe(refused);
      expect(await store.list({ drafts: true, limit: 200 })).toEqual(before);
    });
  });

  it('is refused also for a post that is not there or has changed, and for a repeated request', async () => {
    const token = await makeToken();
    await store.create(fields(), request('repeated'), token);
    await tokens.revoke(token.id);
    const stale = [{ version: 7, updatedAt: post.updatedAt }];
    const missing = '01a20ac9-0000-7000-8000-000000000000';
    for (const write of [
      () => store.create(fields(), request('repeated'), token),
      () => store.patch(missing, { content: 'New' }, { token }),
      () => store.remove(post.id, { token, expected: stale }),
      () => store.patch(post.id, { slug: null }, { token }),
    ])
      await expect(write()).rejects.toBe(refused);
  });

  it('says what else hinders it while the token is active', async () => {
    const token = await makeToken();
    const missing = '01a20ac9-0000-7000-8000-000000000000';
    expect(await store.remove(missing, { token })).toEqual({ kind: 'missing' });
    await store.create(fields(), request('again'), token);
    expect((await store.create(fields(), request('again'), token)).replayed).toBe(true);
    const taken = store.create(fields({ slug: post.slug }), undefined, token);
    await expect(taken).rejects.toMatchObject({ code: 'slug_taken' });
  });
});
