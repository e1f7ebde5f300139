import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { UserDirectory } from '../../../api/access/user-directory.js';
import { createUserStore, type UserDigest } from '../../../db/access/users.js';
import { openDatabase } from '../../../db/database/client.js';
import { digestOf } from '../../../shared/access-token.js';
import { openTestDatabase } from '../../support/database.js';
import { userNamed } from '../../support/identities.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';

const { database, url, stop } = await openTestDatabase();

const first = {
  user: { ...userNamed('first'), id: 'made of the name' },
  secret: 'the secret: of the first 🎉',
};
const userOf = (name: string, secret: string): UserDigest => ({
  ...userNamed(name),
  secretHash: digestOf(secret),
  role: 'user',
});

/** A directory over loads that the test brings to an end, and a database that speaks when the test says so. */
type First = ConstructorParameters<typeof UserDirectory>[0]['first'];

interface ByHand {
  first: First;
  admin?: NonNullable<First> & { secret: string };
  tokens?: { load: () => Promise<void> };
  sessions?: { load: () => Promise<void> };
  removed?: string[];
}

function startByHand(options: ByHand = { first }) {
  const loads: PromiseWithResolvers<UserDigest[]>[] = [];
  const digests = () => {
    const load = Promise.withResolvers<UserDigest[]>();
    loads.push(load);
    return load.promise;
  };
  let hooks = { onListen: () => {}, onNotify: () => {} };
  const recording = createRecordingLog();
  const directory = new UserDirectory({
    first: options.first,
    users: { digests, removedWithin: async () => options.removed ?? [] },
    tokens: options.tokens ?? { load: async () => {} },
    sessions: options.sessions ?? { load: async () => {} },
    ...(options.admin && { admin: options.admin }),
    database: {
      listen: (_channel, given) => {
        hooks = given;
      },
    },
    log: recording.log,
  });
  onTestFinished(() => directory.close());
  return {
    directory,
    attempted: directory.attempted,
    check: (...credentials: Parameters<UserDirectory['check']>) => directory.check(...credentials),
    has: (name: string) => directory.has(name),
    close: () => directory.close(),
    loads,
    recording,
    notify: () => hooks.onNotify(),
    listening: () => hooks.onListen(),
  };
}

describe('UserDirectory, loads by hand', () => {
  it('knows the first user before anything is loaded, and says that it does not know the others', async () => {
    const { directory, check, loads, attempted } = startByHand();
    expect(check(first.user.name, first.secret)).toEqual(first.user);
    expect(check('alice', 'a')).toBeUndefined();
    expect(directory.loaded).toBe(false);
    loads[0]?.resolve([]);
    await attempted;
    expect(directory.loaded).toBe(true);
    expect(check('alice', 'a')).toBeUndefined();
    expect(check(first.user.name, 'a')).toBeUndefined();
    expect(check(first.user.name, first.secret)).toEqual(first.user);
  });

  // Finding M7.
  it('says after each load that it has loaded, and who was removed of late', async () => {
    const { directory, loads, attempted } = startByHand({ first, removed: ['a', 'b'] });
    const seen: (readonly string[])[] = [];
    const stop = directory.onLoad(() => void seen.push(directory.removedIds));
    loads[0]?.resolve([]);
    await attempted;
    const [failing] = [directory.reload()];
    loads[1]?.reject(new Error('away'));
    await failing;
    stop();
    const again = directory.reload();
    loads[2]?.resolve([]);
    await again;
    expect(seen).toEqual([
      ['a', 'b'],
      ['a', 'b'],
    ]);
  });

  it('distinguishes users byte for byte', async () => {
    const { check, loads, attempted } = startByHand();
    loads[0]?.resolve([userOf('Zoë', 'a:b'), userOf('bob', ''), userOf('__proto__', 'c')]);
    await attempted;
    expect(check('Zoë', 'a:b')).toEqual(userNamed('Zoë'));
    expect(check('__proto__', 'c')).toEqual(userNamed('__proto__'));
    for (const [name, secret] of [
      ['Zoë', 'a'],
      ['Zoë', 'c'],
      ['Zoë', 'a:b\0'],
      ['zoë', 'a:b'],
      ['Zoe\u0308', 'a:b'],
      ['Zoë:a', 'b'],
      ['bob', first.secret],
      ['', ''],
      ['constructor', ''],
      ['first', 'a:b'],
    ] as const)
      expect(check(name, secret)).toBeUndefined();
  });

  it('takes one of the name in the database for the user of the environment, with another secret', async () => {
    const { check, loads, attempted } = startByHand();
    loads[0]?.resolve([userOf(first.user.name, 'another')]);
    await attempted;
    expect(check(first.user.name, 'another')).toEqual(first.user);
    expect(check(first.user.name, first.secret)).toEqual(first.user);
    expect(check(first.user.name, 'neither')).toBeUndefined();
  });

  it('calls an operator who has a secret of a user with the role admin', async () => {
    const admin = { user: { ...userNamed('root'), id: 'of the environment' }, secret: 'of the environment' };
    const { directory, loads, attempted, check } = startByHand({ first, admin });
    expect(directory.checkOperator('root', admin.secret)).toMatchObject({
      user: admin.user,
      isOperator: true,
    });
    loads[0]?.resolve([
      { ...userOf('ada', 'a'), role: 'admin' },
      userOf('bob', 'b'),
      userOf('root', 'of the database'),
      { ...userOf(first.user.name, 'c'), role: 'admin' },
    ]);
    await attempted;
    expect(directory.checkOperator('ada', 'a')).toMatchObject({ user: userNamed('ada'), isOperator: true });
    expect(directory.checkOperator('bob', 'b')).toMatchObject({ isOperator: false });
    expect(directory.checkOperator('root', admin.secret)).toMatchObject({
      user: admin.user,
      isOperator: true,
    });
    expect(directory.checkOperator('root', 'of the database')).toMatchObject({
      user: admin.user,
      isOperator: false,
    });
    // A password for chat is told to programs: it opens no console, whatever role the database gives the name.
    expect(directory.checkOperator(first.user.name, first.secret)).toMatchObject({ isOperator: false });
    expect(directory.checkOperator(first.user.name, 'c')).toMatchObject({
      user: first.user,
      isOperator: true,
    });
    expect(check('root', admin.secret)).toEqual(admin.user);
    for (const [name, secret] of [
      ['ada', admin.secret],
      ['root', 'a'],
      [first.user.name, admin.secret],
      ['nobody', ''],
    ] as const)
      expect(directory.checkOperator(name, secret)).toBeUndefined();
  });

  it('has the sessions loaded with the users, behind the tokens', async () => {
    const order: string[] = [];
    const load = (what: string) => ({ load: async () => void order.push(what) });
    const { loads, attempted, directory } = startByHand({
      first,
      tokens: load('tokens'),
      sessions: load('sessions'),
    });
    loads[0]?.resolve([]);
    await attempted;
    expect(order).toEqual(['tokens', 'sessions']);
    expect(directory.loaded).toBe(true);
  });

  it('knows users and tokens also while the sessions cannot be loaded, and tries again', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const load = vi.fn(() => Promise.reject(new Error('relation "session" does not exist')));
    const { loads, attempted, directory, check } = startByHand({ first, sessions: { load } });
    loads[0]?.resolve([userOf('ada', 'a')]);
    await attempted;
    expect([directory.loaded, check('ada', 'a')]).toEqual([true, userNamed('ada')]);
    await vi.advanceTimersByTimeAsync(2000);
    expect(loads).toHaveLength(2);
  });

  it('refuses users without a secret', async () => {
    const { check, loads, attempted } = startByHand({ first: { ...first, secret: undefined } });
    const withoutSecret = { ...userOf('tokens alone', ''), secretHash: Buffer.alloc(0) };
    loads[0]?.resolve([withoutSecret]);
    await attempted;
    for (const secret of ['', first.secret, 'undefined']) {
      expect(check(withoutSecret.name, secret)).toBeUndefined();
      expect(check(first.user.name, secret)).toBeUndefined();
    }
  });

  it('gets along without a first user', async () => {
    const { check, loads, attempted } = startByHand({ first: undefined });
    expect(check('', '')).toBeUndefined();
    loads[0]?.resolve([userOf('alice', 'a')]);
    await attempted;
    expect(check('alice', 'a')).toEqual(userNamed('alice'));
    expect(check('', '')).toBeUndefined();
  });

  it('loads again after a notification during a load, one load at a time', async () => {
    const { check, loads, attempted, notify, listening } = startByHand();
    listening();
    notify();
    notify();
    expect(loads).toHaveLength(1);
    loads[0]?.resolve([userOf('alice', 'a')]);
    await vi.waitFor(() => expect(loads).toHaveLength(2), patience);
    loads[1]?.resolve([]);
    await attempted;
    expect(loads).toHaveLength(2);
    expect(check('alice', 'a')).toBeUndefined();
  });

  it('has the tokens loaded each time, and counts as loaded only with them', async () => {
    let isAway = true;
    let times = 0;
    const load = async () => {
      times += 1;
      if (isAway) throw new Error('away');
    };
    const { directory, loads, attempted, notify } = startByHand({ first, tokens: { load } });
    loads[0]?.reject(new Error('away'));
    await attempted;
    expect(times).toBe(0);
    notify();
    await vi.waitFor(() => expect(loads).toHaveLength(2), patience);
    loads[1]?.resolve([]);
    await vi.waitFor(() => expect(times).toBe(1), patience);
    expect(directory.loaded).toBe(false);
    isAway = false;
    notify();
    await vi.waitFor(() => expect(loads).toHaveLength(3), patience);
    loads[2]?.resolve([]);
    await vi.waitFor(() => expect(directory.loaded).toBe(true), patience);
    expect(times).toBe(2);
  });

  it('keeps the users while loading fails, and logs that once', async () => {
    const { check, loads, attempted, notify, recording } = startByHand();
    loads[0]?.resolve([userOf('alice', 'a')]);
    await attempted;
    for (const count of [2, 3]) {
      notify();
      await vi.waitFor(() => expect(loads).toHaveLength(count), patience);
      loads[count - 1]?.reject(new Error('away'));
      await vi.waitFor(() => expect(recording.text()).toContain('could not load the users'), patience);
    }
    expect(check('alice', 'a')).toEqual(userNamed('alice'));
    expect(recording.lines.filter(({ msg }) => msg === 'could not load the users')).toHaveLength(1);
  });

  it('tries again by itself soon after a failure', async () => {
    const { check, loads, attempted } = startByHand();
    loads[0]?.reject(new Error('away'));
    await attempted;
    await vi.waitFor(() => expect(loads).toHaveLength(2), patience);
    loads[1]?.resolve([userOf('alice', 'a')]);
    await vi.waitFor(() => expect(check('alice', 'a')).toEqual(userNamed('alice')), patience);
  });

  it('stops loading when it is closed', async () => {
    const { loads, attempted, notify, close } = startByHand();
    loads[0]?.resolve([]);
    await attempted;
    close();
    notify();
    expect(loads).toHaveLength(1);
  });
});

describe('UserDirectory, with the database', () => {
  const { log, text } = createRecordingLog();
  const nothing = { load: async () => {} };
  const otherProcess = openDatabase({ url, poolSize: 1, log });
  afterAll(async () => {
    await otherProcess.close();
    await stop();
  });

  it('follows what another process adds and removes, and keeps its users when the database closes', async () => {
    const store = createUserStore(otherProcess);
    const secret = 'a secret that appears nowhere else';
    await store.add({ name: 'early', secretHash: digestOf(secret) });
    const users = createUserStore(database);
    const tokens = { load: async () => {} };
    const directory = new UserDirectory({ first, users, tokens, sessions: nothing, database, log });
    const check = (name: string) => directory.check(name, secret);
    onTestFinished(() => directory.close());
    await directory.attempted;
    expect(check('early')).toMatchObject({ name: 'early' });

    // Well below the time after which it would load by itself.
    const soon = { timeout: 5000, interval: 5 };
    await store.add({ name: 'late', secretHash: digestOf(secret) });
    await vi.waitFor(() => expect(check('late')).toMatchObject({ name: 'late' }), soon);
    await store.remove('early');
    await vi.waitFor(() => expect(check('early')).toBeUndefined(), soon);

    // Whoever has made a change need not wait for its notification.
    await store.add({ name: 'own', secretHash: digestOf(secret) });
    await directory.reload();
    expect(check('own')).toMatchObject({ name: 'own' });

    await database.close();
    await directory.reload();
    expect(check('late')).toMatchObject({ name: 'late' });
    expect(text()).not.toContain(secret);
  });

  it('serves the first user when the database was never there', async () => {
    const away = openDatabase({ url: 'postgres://127.0.0.1:1/x', poolSize: 1, log });
    const users = createUserStore(away);
    const tokens = { load: async () => {} };
    const directory = new UserDirectory({ first, users, tokens, sessions: nothing, database: away, log });
    onTestFinished(() => directory.close());
    await directory.attempted;
    expect(directory.check(first.user.name, first.secret)).toEqual(first.user);
    expect(directory.loaded).toBe(false);
    await away.close();
  });
});
