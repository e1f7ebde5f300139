import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { sessionLifetimeMs } from '../../../api/access/access-directory.js';
import { type ActiveSession } from '../../../db/access/sessions.js';
import { digestOf } from '../../../shared/credential-forms.js';
import { directoryOf } from '../../support/access-directory.js';
import { userNamed } from '../../support/identities.js';
import { MemorySessions } from '../../support/memory-sessions.js';

const ada = userNamed('ada');
const admin = { user: { ...userNamed('root'), id: 'of the environment' }, secret: 'the password' };
const first = { ...userNamed('demo'), id: 'also of the environment' };

function start(options: { admin?: typeof admin | undefined; store?: MemorySessions } = {}) {
  const store = options.store ?? new MemorySessions();
  const clock = { now: 0 };
  const given = 'admin' in options ? options.admin : admin;
  const environment = { admin: given, first: { user: first } };
  const directory = directoryOf({ environment, sessions: store, now: () => clock.now });
  onTestFinished(() => directory.close());
  return { directory, store, clock };
}

const rowOf = (key: string, facts: Partial<ActiveSession> = {}): ActiveSession => ({
  digest: digestOf(key),
  ...{ userId: ada.id, userName: ada.name, expiresAt: new Date(1), expiresInMs: 1000 },
  user: { ...ada, role: 'admin' },
  ...facts,
});

describe('AccessDirectory, sessions', () => {
  it('a session that it opened -> is known by its key alone, for twelve hours', async () => {
    const { directory, store, clock } = start();
    const { key, expiresAt } = await directory.openSession({ user: ada, secretHash: undefined });
    expect(key).toMatch(/^[\w-]{43}$/);
    const digest = digestOf(key);
    expect(directory.checkSession(key)).toEqual({
      ...ada,
      scopes: ['admin'],
      session: { digest, expiresAt },
    });
    expect(store.rows).toMatchObject([{ digest, userId: ada.id, userName: 'ada' }]);
    expect(JSON.stringify(store.rows)).not.toContain(key);
    for (const other of ['', key.slice(1), digest.toString('base64')]) {
      expect(directory.checkSession(other)).toBeUndefined();
      expect(await directory.findSession(other)).toBeUndefined();
    }
    clock.now = sessionLifetimeMs - 1;
    expect(directory.checkSession(key)).toBeDefined();
    clock.now++;
    expect(directory.checkSession(key)).toBeUndefined();
    expect(await directory.findSession(key)).toBeUndefined();
    expect((await directory.openSession({ user: ada, secretHash: undefined })).key).not.toBe(key);
  });

  it('sessions of users of all kinds -> count only while the user is there and has the role', async () => {
    const { directory, store } = start();
    const known: [key: string, name: string | undefined, facts: Partial<ActiveSession>][] = [
      ['good', 'ada', {}],
      ['without role', undefined, { user: { ...ada, role: 'user' } }],
      ['without user', undefined, { user: null }],
      ['of an earlier one', undefined, { userId: 'another id' }],
      ['of the environment', 'root', { userName: 'root', user: null }],
      ['of the first', 'demo', { userName: 'demo', user: { ...userNamed('demo'), role: 'admin' } }],
      ['of the first as user', undefined, { userName: 'demo', user: null }],
    ];
    store.rows = known.map(([key, , facts]) => rowOf(key, facts));
    for (const [key, name] of known) expect((await directory.findSession(key))?.name, key).toBe(name);
    await directory.reload();
    for (const [key, name] of known) expect(directory.checkSession(key)?.name, key).toBe(name);
    expect(directory.checkSession('of the first')).toMatchObject(first);
    expect(directory.checkSession('of the environment')).toMatchObject(admin.user);
  });

  it('a session of the environment -> ends with its password', async () => {
    const { directory, store } = start();
    const { key } = await directory.openSession({ user: admin.user, secretHash: undefined });
    expect(directory.checkSession(key)).toMatchObject(admin.user);
    const same = start({ store }).directory;
    expect(await same.findSession(key)).toMatchObject(admin.user);
    const changed = start({ store, admin: { ...admin, secret: 'another' } }).directory;
    const unset = start({ store, admin: undefined }).directory;
    for (const other of [changed, unset]) {
      await other.reload();
      expect(other.checkSession(key)).toBeUndefined();
      expect(await other.findSession(key)).toBeUndefined();
    }
  });

  it('a slower reading -> takes back neither what it has not seen nor what is over', async () => {
    const { directory, store } = start();
    const { key: ended } = await directory.openSession({ user: ada, secretHash: undefined });
    const asked = Promise.withResolvers<void>();
    const listActive = store.listActive.bind(store);
    const stale = store.rows;
    vi.spyOn(store, 'listActive').mockImplementationOnce(() => asked.promise.then(() => stale));
    const loading = directory.reload();
    await directory.closeSession(directory.checkSession(ended) ?? { ...ada, scopes: [] });
    const { key: opened } = await directory.openSession({ user: ada, secretHash: undefined });
    asked.resolve();
    await loading;
    expect([directory.checkSession(ended), directory.checkSession(opened)]).toMatchObject([
      undefined,
      { name: 'ada' },
    ]);
    expect(await listActive()).toHaveLength(1);
  });
});
