import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { SessionDirectory, sessionLifetimeMs } from '../../../api/access/session-directory.js';
import { UserDirectory } from '../../../api/access/user-directory.js';
import { type ActiveSession, createSessionStore } from '../../../db/access/sessions.js';
import { createUserStore } from '../../../db/access/users.js';
import { openDatabase } from '../../../db/database/client.js';
import { digestOf } from '../../../shared/access-token.js';
import { openTestDatabase } from '../../support/database.js';
import { userNamed } from '../../support/identities.js';
import { MemorySessions } from '../../support/memory-sessions.js';
import { createRecordingLog } from '../../support/recording-log.js';

const ada = userNamed('ada');
const admin = { user: { ...userNamed('root'), id: 'of the environment' }, secret: 'the password' };
const first = { ...userNamed('demo'), id: 'also of the environment' };

function start(options: { admin?: typeof admin | undefined; store?: MemorySessions } = {}) {
  const store = options.store ?? new MemorySessions();
  const clock = { now: 0 };
  const given = 'admin' in options ? options.admin : admin;
  const directory = new SessionDirectory({ admin: given, first, sessions: store, now: () => clock.now });
  return { directory, store, clock };
}

const rowOf = (key: string, facts: Partial<ActiveSession> = {}): ActiveSession => ({
  digest: digestOf(key),
  ...{ userId: ada.id, userName: ada.name, expiresAt: new Date(1), expiresInMs: 1000 },
  user: { ...ada, role: 'admin' },
  ...facts,
});

describe('SessionDirectory', () => {
  it('knows a session that it opened, by its key alone, for twelve hours', async () => {
    const { directory, store, clock } = start();
    const { key, expiresAt } = await directory.open({ user: ada, secretHash: undefined });
    expect(key).toMatch(/^[\w-]{43}$/);
    const digest = digestOf(key);
    expect(directory.check(key)).toEqual({ ...ada, scopes: ['admin'], session: { digest, expiresAt } });
    expect(store.rows).toMatchObject([{ digest, userId: ada.id, userName: 'ada' }]);
    expect(JSON.stringify(store.rows)).not.toContain(key);
    for (const other of ['', key.slice(1), digest.toString('base64')]) {
      expect(directory.check(other)).toBeUndefined();
      expect(await directory.find(other)).toBeUndefined();
    }
    clock.now = sessionLifetimeMs - 1;
    expect(directory.check(key)).toBeDefined();
    clock.now++;
    expect(directory.check(key)).toBeUndefined();
    expect(await directory.find(key)).toBeUndefined();
    expect((await directory.open({ user: ada, secretHash: undefined })).key).not.toBe(key);
  });

  it('asks the database once for a session that it has not heard of', async () => {
    const { directory, store } = start();
    store.rows = [rowOf('key')];
    expect(directory.check('key')).toBeUndefined();
    expect(await directory.find('key')).toMatchObject({ name: 'ada', scopes: ['admin'] });
    store.isDown = true;
    expect(await directory.find('key')).toMatchObject({ name: 'ada' });
    expect(directory.check('key')).toMatchObject({ name: 'ada' });
    await expect(directory.find('other')).rejects.toMatchObject({ code: 'database_unavailable' });
  });

  it('keeps what it knows while the database is away, and opens and ends nothing', async () => {
    const { directory, store } = start();
    const { key } = await directory.open({ user: ada, secretHash: undefined });
    const caller = directory.check(key) ?? { ...ada, scopes: [] };
    store.isDown = true;
    const down = { code: 'database_unavailable' };
    await expect(directory.load()).rejects.toMatchObject(down);
    await expect(directory.open({ user: ada, secretHash: undefined })).rejects.toMatchObject(down);
    await expect(directory.close(caller)).rejects.toMatchObject(down);
    expect(directory.check(key)).toBeDefined();
  });

  it('counts a session only while its user is there and has the role', async () => {
    const { directory, store } = start();
    store.rows = [
      rowOf('good'),
      rowOf('without role', { user: { ...ada, role: 'user' } }),
      rowOf('without user', { user: null }),
      rowOf('of an earlier one', { userId: 'another id' }),
      rowOf('of the environment', { userName: 'root', user: null }),
      rowOf('of the first', { userName: 'demo', user: { ...userNamed('demo'), role: 'admin' } }),
      rowOf('of the first as user', { userName: 'demo', user: null }),
    ];
    const expected = ['ada', undefined, undefined, undefined, 'root', 'demo', undefined];
    const keys = store.rows.map(({ digest }) => digest.toString());
    const plain = ['good', 'without role', 'without user', 'of an earlier one', 'of the environment'];
    const named = [...plain, 'of the first', 'of the first as user'];
    expect(keys).toHaveLength(named.length);
    for (const [at, key] of named.entries())
      expect((await directory.find(key))?.name, key).toBe(expected[at]);
    await directory.load();
    for (const [at, key] of named.entries()) expect(directory.check(key)?.name, key).toBe(expected[at]);
    expect(directory.check('of the first')).toMatchObject(first);
    expect(directory.check('of the environment')).toMatchObject(admin.user);
  });

  it('opens sessions of the environment that end with its password', async () => {
    const { directory, store } = start();
    const { key } = await directory.open({ user: admin.user, secretHash: undefined });
    expect(directory.check(key)).toMatchObject(admin.user);
    const same = start({ store }).directory;
    expect(await same.find(key)).toMatchObject(admin.user);
    const changed = start({ store, admin: { ...admin, secret: 'another' } }).directory;
    const unset = start({ store, admin: undefined }).directory;
    for (const other of [changed, unset]) {
      await other.load();
      expect(other.check(key)).toBeUndefined();
      expect(await other.find(key)).toBeUndefined();
    }
  });

  it('ends one session, or all of the user', async () => {
    const { directory } = start();
    const keys: string[] = [];
    for (const user of [ada, ada, ada, userNamed('bob')])
      keys.push((await directory.open({ user: user, secretHash: undefined })).key);
    const [one = '', two = '', three = '', bobs = ''] = keys;
    const callerOf = (key: string) => directory.check(key) ?? { ...ada, scopes: [] };
    await directory.close(callerOf(one));
    expect(keys.map((key) => directory.check(key)?.name)).toEqual([undefined, 'ada', 'ada', 'bob']);
    await directory.close(callerOf(two), { everywhere: true });
    expect([two, three, bobs].map((key) => directory.check(key)?.name)).toEqual([
      undefined,
      undefined,
      'bob',
    ]);
    expect(await directory.find(three)).toBeUndefined();
  });

  it('does not take back what a slower reading has not seen, nor what it has seen and is over', async () => {
    const { directory, store } = start();
    const { key: ended } = await directory.open({ user: ada, secretHash: undefined });
    const asked = Promise.withResolvers<void>();
    const listActive = store.listActive.bind(store);
    const stale = store.rows;
    vi.spyOn(store, 'listActive').mockImplementationOnce(() => asked.promise.then(() => stale));
    const loading = directory.load();
    await directory.close(directory.check(ended) ?? { ...ada, scopes: [] });
    const { key: opened } = await directory.open({ user: ada, secretHash: undefined });
    asked.resolve();
    await loading;
    expect([directory.check(ended), directory.check(opened)]).toMatchObject([undefined, { name: 'ada' }]);
    expect(await listActive()).toHaveLength(1);
  });

  it('asks again for a session where the sessions have changed meanwhile', async () => {
    const { directory, store } = start();
    store.rows = [rowOf('key')];
    const asked = Promise.withResolvers<void>();
    vi.spyOn(store, 'find').mockImplementationOnce(() => asked.promise.then(() => rowOf('key')));
    const found = directory.find('key');
    store.rows = [];
    await directory.load();
    asked.resolve();
    expect(await found).toBeUndefined();
    expect(directory.check('key')).toBeUndefined();
  });
});

describe('SessionDirectory, with the database', async () => {
  const { database, url, stop } = await openTestDatabase();
  const { log } = createRecordingLog();
  const otherProcess = openDatabase({ url, poolSize: 1, log });
  afterAll(async () => {
    await otherProcess.close();
    await stop();
  });

  it('hears of what other processes open and end, and of users who are reset and removed', async () => {
    const [here, there] = [database, otherProcess].map(
      (of) => new SessionDirectory({ admin: undefined, first: undefined, sessions: createSessionStore(of) }),
    ) as [SessionDirectory, SessionDirectory];
    const users = createUserStore(otherProcess);
    const tokens = { load: async () => {} };
    const open = new UserDirectory({ first: undefined, users, tokens, sessions: here, database, log });
    onTestFinished(() => open.close());
    await open.attempted;
    // Well below the time after which it would load by itself.
    const soon = { timeout: 5000, interval: 5 };
    const known = (key: string) => vi.waitFor(() => expect(here.check(key)).toBeDefined(), soon);
    const ended = (key: string) => vi.waitFor(() => expect(here.check(key)).toBeUndefined(), soon);
    const id = (await users.add({ name: 'eve', secretHash: digestOf('a'), role: 'admin' })) ?? '';
    const eve = { ...userNamed('eve'), id };

    const { key } = await there.open({ user: eve, secretHash: digestOf('a') });
    await known(key);
    expect(here.check(key)).toMatchObject({ id, name: 'eve' });
    await there.close(there.check(key) ?? { ...eve, scopes: [] });
    await ended(key);

    const { key: beforeReset } = await there.open({ user: eve, secretHash: digestOf('a') });
    await known(beforeReset);
    await users.resetSecret('eve', digestOf('b'));
    await ended(beforeReset);
    const { key: beforeRemoval } = await there.open({ user: eve, secretHash: digestOf('b') });
    await known(beforeRemoval);
    await users.remove('eve');
    await ended(beforeRemoval);
  });
});
