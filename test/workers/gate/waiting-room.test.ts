import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure } from '../../../shared/failures.js';
import { Cancelled, type GatedCall, NotBegun } from '../../../workers/gate/gated-call.js';
import { ImageRoom } from '../../../workers/gate/image-room.js';
import { WaitingRoom } from '../../../workers/gate/waiting-room.js';
import { callOf } from '../../support/calls.js';

const mebibyte = 1_048_576;
const minutes = (count: number) => count * 60_000;

let size: number;
let imageRoom: ImageRoom;
let room: WaitingRoom;
/** How long a model holds a user's calls, in milliseconds, by both names. */
let held: Record<string, number>;
/** The calls that run, in order. */
let running: { name: string; end(): void; live(): void }[];
/** How jobs have ended, by name. */
let ended: Record<string, unknown>;
let parkedCounts: number[];

const open = () =>
  new WaitingRoom({
    size: () => size,
    leftMs: ({ model, user }) => held[`${model} ${user}`] ?? held[model] ?? 0,
    refusalOf: () => new Failure('provider_rate_limited'),
    imageRoom,
    onParked: () => parkedCounts.push(room.parked),
  });

beforeEach(() => {
  vi.useFakeTimers();
  [size, held, running, ended, parkedCounts] = [100, {}, [], {}, []];
  imageRoom = new ImageRoom({ maxBytes: 160 * mebibyte });
  room = open();
  return () => {
    room.dispose();
    vi.useRealTimers();
  };
});

const turn = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

/** A job of this user whose call the test ends; an end of `name` is kept under it. */
async function start(name: string, own: Partial<GatedCall> = {}, inMs = minutes(60)): Promise<void> {
  const deadline = Date.now() + inMs;
  const call = { ...callOf({ deadline }), user: name, addedAt: performance.now(), ...own };
  const begin = (onLife: () => void) =>
    new Promise<string>((resolve) => running.push({ name, end: () => resolve('done'), live: onLife }));
  const keep = (end: unknown) => {
    ended[name] = end instanceof Failure ? end.code : end;
  };
  void room.enter(call, begin).then(keep, keep);
  await turn();
}
async function startAll(count: number, name: string, own: Partial<GatedCall> = {}): Promise<void> {
  for (let n = 0; n < count; n += 1) await start(name, own);
}
async function end(count: number, name: string): Promise<void> {
  const own = running.filter((call) => call.name === name).slice(0, count);
  running = running.filter((call) => !own.includes(call));
  for (const call of own) call.end();
  await turn();
}
/** How many calls of each user run. */
const shares = () => {
  const names = running.map(({ name }) => name);
  const count = (name: string) => names.filter((other) => other === name).length;
  return [...new Set(names)].map((name) => `${count(name)} ${name}`).join(', ');
};

describe('a slot', () => {
  it('goes to the most urgent, then to the oldest, at once when there are more, and to fewer when there are less', async () => {
    size = 1;
    await start('first');
    await start('late', { priority: 1, addedAt: 9 });
    await start('asynchronous', { priority: 7, addedAt: 1 });
    await start('early', { priority: 1, addedAt: 5 });
    await end(1, 'first');
    expect(shares()).toBe('1 early');
    size = 2;
    room.wake();
    await turn();
    expect(shares()).toBe('1 early, 1 late');
    size = 1;
    await end(1, 'early');
    expect(shares()).toBe('1 late');
    await end(1, 'late');
    expect([shares(), room.parked]).toEqual(['1 asynchronous', 0]);
  });

  it('of a call that shows life as a breaker opens -> stays with it', async () => {
    size = 1;
    await start('M', { progress: { isAlive: true, hasBegun: false } });
    await start('V');
    room.leaveSlots({});
    await turn();
    expect(shares()).toBe('1 M');
  });

  it('of a call that hangs as a breaker opens -> is another’s, until all are over', async () => {
    size = 2;
    await startAll(2, 'M', { model: 'hangs' });
    await startAll(3, 'V');
    expect(shares()).toBe('2 M');
    room.leaveSlots({ model: 'other' });
    room.leaveSlots({ model: 'hangs', user: 'V' });
    expect([shares(), room.parked]).toEqual(['2 M', 0]);
    room.leaveSlots({ model: 'hangs', user: 'M' });
    room.wake();
    await turn();
    expect([shares(), room.parked]).toEqual(['2 M, 2 V', 2]);
    await end(2, 'M');
    expect([shares(), room.parked]).toEqual(['2 V', 0]);
  });
});

describe('calls that may take long', () => {
  it('100 of M, then those of others -> three quarters, and whoever comes next begins', async () => {
    await startAll(100, 'M');
    expect([shares(), room.parked]).toEqual(['75 M', 25]);
    await startAll(30, 'V');
    await startAll(30, 'W');
    await start('X');
    expect(shares()).toBe('75 M, 18 V, 5 W, 1 X');
  });

  it('others of them end -> the places are for who waits, first come, first served', async () => {
    await startAll(100, 'M');
    await startAll(25, 'V');
    await end(18, 'V');
    expect(shares()).toBe('75 M, 7 V');
    await end(30, 'M');
    expect(shares()).toBe('69 M, 7 V');
    await end(7, 'V');
    expect(shares()).toBe('70 M');
  });

  it.each<[how: string, slots: number, own: Partial<GatedCall>, inMs: number, share: string]>([
    ['that are read as they are written', 100, { isRead: true }, 5000, '75 M'],
    ['with more than ten seconds', 100, {}, 10_001, '75 M'],
    ['with ten seconds', 100, {}, 10_000, '100 M'],
    ['that are retries', 100, { kind: 'retry' }, 10_001, '75 M'],
    ['in a pool of nine', 9, {}, 10_001, '9 M'],
    ['in a pool of ten', 10, {}, 10_001, '7 M'],
  ])('calls %s, of %i slots (%j, %i ms) -> %s', async (_, slots, own, inMs, share) => {
    size = slots;
    for (let n = 0; n < 100; n += 1) await start('M', own, inMs);
    expect(shares()).toBe(share);
  });

  it('the next one is held by its model -> the one behind it begins', async () => {
    await startAll(75, 'M');
    await startAll(2, 'M', { model: 'limited' });
    await start('M');
    held = { limited: 30_000 };
    room.wake();
    await end(1, 'M');
    expect(shares()).toBe('75 M');
  });
});

describe('a call that waits', () => {
  const stop = new AbortController();
  it.each<[how: string, own: Partial<GatedCall>, inMs: number, act: () => unknown, end: unknown]>([
    ['its deadline passes', {}, minutes(1), () => turn(minutes(1)), 'timeout'],
    [
      'its caller leaves',
      { stop: stop.signal },
      minutes(1),
      () => stop.abort(new Cancelled()),
      new Cancelled(),
    ],
    ['the pool stops', {}, minutes(1), () => room.close(), new NotBegun()],
  ])('%s -> it ends so, and the next one is asked', async (_, own, inMs, act, end) => {
    size = 1;
    await start('first');
    await start('waits', own, inMs);
    await start('next', { kind: 'retry', patienceMs: minutes(5) });
    await act();
    await turn();
    running[0]?.end();
    await turn();
    expect([ended.waits, shares()]).toEqual([end, '1 first, 1 next']);
  });

  it.each<[how: string, own: Partial<GatedCall>, inMs: number, heldMs: number]>([
    ['its patience', { patienceMs: 3000 }, minutes(1), 3000],
    ['its deadline', {}, 5000, 5000],
  ])(
    'is held for as long as %s -> is told at once, also when that shows later',
    async (_, own, inMs, heldMs) => {
      held = { m: heldMs };
      await start('told', own, inMs);
      held = { m: heldMs - 1 };
      await start('waits', own, inMs);
      expect(ended).toEqual({ told: 'provider_rate_limited' });
      held = { m: heldMs };
      room.wake();
      await turn();
      expect(ended).toMatchObject({ waits: 'provider_rate_limited' });
    },
  );

  it.each<[patienceMs: number, inMs: number, end: string]>([
    [3000, 5000, 'provider_rate_limited'],
    [5000, 3000, 'timeout'],
  ])(
    'for a probe, with a patience of %i ms and %i ms -> ends after 3 s: %s',
    async (patienceMs, inMs, end) => {
      held = { m: Number.POSITIVE_INFINITY };
      await start('waits', { patienceMs }, inMs);
      expect(room.parked).toBe(1);
      await turn(2999);
      expect(ended).toEqual({});
      await turn(1);
      expect(ended).toEqual({ waits: end });
    },
  );

  it('while its model holds it for more than half a second -> parked', async () => {
    size = 1;
    held = { m: 500 };
    await start('short');
    held = { m: 501 };
    room.wake();
    await turn(400);
    expect(parkedCounts).toEqual([1]);
    held = {};
    room.wake();
    await turn();
    expect([shares(), room.parked]).toEqual(['1 short', 0]);
  });

  it.each([1, 2, 3, 4, 5])('its pause ends between two looks at the clock (%d) -> begins', async (reads) => {
    await start('retry', { kind: 'retry', pauseMs: 100 });
    await turn(99);
    const before = performance.now() + 0.9;
    let count = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => {
      count += 1;
      return count <= reads ? before : before + 0.2;
    });
    room.wake();
    await Promise.resolve();
    clock.mockRestore();
    await turn(2);
    expect(shares()).toBe('1 retry');
  });

  it('a breaker opens -> those who waited at it are told, those behind a slot go on waiting, retries do not', async () => {
    size = 1;
    await start('first');
    held = { probed: Number.POSITIVE_INFINITY };
    for (const [name, own] of Object.entries<Partial<GatedCall>>({
      probing: { model: 'probed' },
      other: { model: 'probed', user: 'V' },
      behind: {},
      retry: { kind: 'retry' },
    }))
      await start(name, { user: 'M', ...own });
    room.refuse({ model: 'probed', user: 'M' });
    room.refuse({ model: 'm' });
    await turn();
    const refused = 'provider_rate_limited';
    expect(ended).toEqual({ probing: refused, retry: refused });
    room.refuse({});
    await turn();
    expect(Object.keys(ended).toSorted()).toEqual(['behind', 'other', 'probing', 'retry']);
  });

  it('in a queue of its pool for long, and then held for a moment -> its patience begins with the hold', async () => {
    size = 1;
    await start('first');
    await start('waits', { patienceMs: 3000 });
    await turn(10_000);
    held = { m: 100 };
    room.wake();
    await turn();
    held = {};
    await end(1, 'first');
    await turn(100);
    expect([shares(), ended]).toEqual(['1 waits', { first: 'done' }]);
  });

  it('parked, with no slot when it may begin -> goes back to the queue, which knows who is next', async () => {
    size = 1;
    held = { limited: 10_000 };
    await start('M', { model: 'limited' });
    await start('V');
    held = {};
    room.wake();
    await turn();
    expect([shares(), ended]).toEqual(['1 V', { M: new NotBegun() }]);
  });

  it('for a probe, and its breaker is forgotten meanwhile -> begins with the next look', async () => {
    held = { m: Number.POSITIVE_INFINITY };
    await start('waits');
    held = {};
    await start('next', { model: 'other' });
    expect(shares()).toBe('1 waits, 1 next');
  });

  it('a retry -> begins after its pause, before newer jobs, and stays when the pool stops', async () => {
    size = 1;
    await start('retry', { kind: 'retry', pauseMs: 400, addedAt: 1 });
    await start('new', { addedAt: 2 }, 60_000);
    await start('newer', { addedAt: 3 }, 60_000);
    await turn(399);
    expect([shares(), room.parked]).toEqual(['1 new', 0]);
    room.close();
    await turn(1);
    await end(1, 'new');
    expect([shares(), ended.newer]).toEqual(['1 retry', new NotBegun()]);
  });

  it('500 are parked -> three quarters of one user; more are told, or go back where the share was missing', async () => {
    held = { 'held M': 30_000 };
    for (let n = 0; n < 376; n += 1) void start('M', { model: 'held' });
    await turn();
    expect([room.parked, ended.M]).toEqual([375, 'provider_rate_limited']);
    await startAll(75, 'V');
    for (let n = 0; n < 94; n += 1) void start('V');
    await turn();
    expect([shares(), room.parked, ended.V]).toEqual(['75 V', 468, new NotBegun(true)]);
  });
});

describe('calls with images', () => {
  const showing = (megabytes: number): Partial<GatedCall> => ({ besideBytes: megabytes * mebibyte });

  it('find no room -> are parked until the provider has those of others, and calls without go on', async () => {
    await start('first', showing(10));
    await start('second', showing(10));
    await start('third', showing(1));
    await start('text');
    expect([shares(), room.parked]).toEqual(['1 first, 1 second, 1 text', 1]);
    running[0]?.live();
    await turn();
    expect([shares(), room.parked]).toEqual(['1 first, 1 second, 1 text, 1 third', 0]);
  });

  it('are of one that has more than all the room -> it counts for half, and goes on beside others', async () => {
    await start('large', showing(30));
    await start('large', showing(1));
    await start('other', showing(10));
    expect(shares()).toBe('1 large, 1 other');
    await end(1, 'large');
    expect(shares()).toBe('1 other, 1 large');
  });

  it('of one user -> at most half of the room, and the next user begins at once', async () => {
    await startAll(10, 'M', showing(2));
    expect(shares()).toBe('5 M');
    await start('V', showing(2));
    expect(shares()).toBe('5 M, 1 V');
  });

  it('are streams of half an hour with a small picture -> another user’s pictures begin', async () => {
    await startAll(70, 'M', { besideBytes: 8192, isRead: true });
    await start('V', showing(10));
    expect(shares()).toBe('70 M, 1 V');
  });

  it('are small -> they take no room from others, however many they are', async () => {
    await startAll(75, 'M', showing(0.12));
    await start('V', showing(20));
    expect(shares()).toBe('75 M, 1 V');
  });

  it('of two pools -> what one gives back is for the other', async () => {
    await start('m', showing(10));
    await start('w', showing(10));
    const first = room;
    room = open();
    await start('v', showing(1));
    expect(shares()).toBe('1 m, 1 w');
    await end(1, 'm');
    first.dispose();
    expect(shares()).toBe('1 w, 1 v');
  });
});
