import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure } from '../../../shared/failures.js';
import { Cancelled, NotBegun } from '../../../workers/gate/ends.js';
import type { Gate } from '../../../workers/gate/gate.js';
import { ImageRoom } from '../../../workers/gate/image-room.js';
import { Slots } from '../../../workers/gate/slots.js';
import { callOf } from '../../support/calls.js';
import { openGate } from '../../support/gate.js';

let gate: Gate;
let slots: Slots;
/** The users of the calls that run, in order, and how to end one. */
let running: { user: string; end: () => void }[];
/** The ends of the jobs that have ended. */
let ended: unknown[];
let isFull: boolean;

const minutes = (count: number) => count * 60_000;

function open(size: number): void {
  slots = new Slots({ size: () => size, onChange: () => {} });
  const imageRoom = new ImageRoom({ maxBytes: 1000 });
  const open = openGate({ concurrency: size, hasRoom: () => !isFull, imageRoom });
  ({ gate } = open);
}

beforeEach(() => {
  vi.useFakeTimers();
  [running, ended, isFull] = [[], [], false];
  open(100);
  return () => {
    gate.dispose();
    vi.useRealTimers();
  };
});

const turn = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

/** Jobs of one user, which come after one another; each has a slot first, and makes a call that the test ends. */
async function start(count: number, user: string, own: Parameters<typeof callOf>[0] = {}): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const slot = slots.open({ priority: 0, addedAt: performance.now() });
    const call = callOf({ deadline: Date.now() + minutes(60), user, slot, ...own });
    const make = () =>
      gate.run(call, () => new Promise<void>((resolve) => running.push({ user, end: resolve })));
    const job = slot.take().then(make);
    void job.catch((error) => ended.push(error)).finally(() => slot.close());
  }
  await turn();
}

async function end(count: number, user: string): Promise<void> {
  const own = running.filter((call) => call.user === user).slice(0, count);
  running = running.filter((call) => !own.includes(call));
  for (const call of own) call.end();
  await turn();
}

/** How many calls of each user run. */
const shares = () => {
  const count = (user: string) => running.filter((call) => call.user === user).length;
  return [...new Set(running.map(({ user }) => user))].map((user) => `${count(user)} ${user}`).join(', ');
};

describe('calls that take long', () => {
  it('100 of M, then those of others -> whoever comes next begins', async () => {
    await start(100, 'M');
    expect(shares()).toBe('75 M');
    await start(30, 'V');
    await start(30, 'W');
    await start(1, 'X');
    expect(shares()).toBe('75 M, 18 V, 5 W, 1 X');
  });

  it('others of them end -> the places are for who waits, first come, first served', async () => {
    await start(100, 'M');
    await start(25, 'V');
    await turn(20_000);
    await end(18, 'V');
    expect(shares()).toBe('75 M, 7 V');
    await end(30, 'M');
    expect(shares()).toBe('69 M, 7 V');
    await end(7, 'V');
    expect(shares()).toBe('70 M');
  });

  it.each<[how: string, size: number, usualMs: number, share: string]>([
    ['a model that usually answers in a second', 100, 1000, '100 M'],
    ['one that usually takes longer', 100, 11_000, '75 M'],
    ['a small pool', 9, 11_000, '9 M'],
  ])('%s, of %i slots and %i ms -> %s', async (_, size, usualMs, share) => {
    open(size);
    await start(1, 'M');
    await turn(usualMs);
    await end(1, 'M');
    await start(100, 'M');
    expect(shares()).toBe(share);
  });

  it('a model that turns out to be fast -> all begin that have waited', async () => {
    await start(120, 'M');
    await turn(10);
    await end(1, 'M');
    expect(shares()).toBe('100 M');
  });

  const stop = new AbortController();
  it.each<[how: string, own: Parameters<typeof callOf>[0], act: () => unknown, end: unknown]>([
    ['the deadline passes', { deadline: Date.now() + minutes(1) }, () => turn(minutes(1)), 'timeout'],
    ['its caller leaves', { stop: stop.signal }, () => stop.abort(new Cancelled()), new Cancelled()],
    ['the pool stops', {}, () => gate.close(), new NotBegun()],
  ])('%s while one waits -> it ends so', async (_, own, act, end) => {
    await start(75, 'M');
    await start(1, 'M', own);
    await act();
    await turn();
    const [error] = ended;
    expect(error instanceof Failure ? error.code : error).toEqual(end);
    expect(shares()).toBe('75 M');
  });

  it('no room for one more job without a slot -> it goes back to the queue for a moment', async () => {
    await start(75, 'M');
    isFull = true;
    await start(1, 'M');
    expect(ended).toEqual([new NotBegun(true)]);
    await start(1, 'V');
    expect(shares()).toBe('75 M, 1 V');
  });

  it('the next one has to wait for its model -> the one behind it begins', async () => {
    await start(75, 'M');
    await start(2, 'M', { request: { model: 'limited', turns: [] } });
    await start(1, 'M');
    gate.hold({ model: 'limited', holdMs: minutes(1), user: undefined });
    await end(1, 'M');
    expect(shares()).toBe('75 M');
  });

  it('many wait for room for their images -> they count meanwhile, since they come back without asking', async () => {
    const showing = (bytes: number) => {
      const image = { type: 'image', mediaType: 'image/png', sha256: 'a'.repeat(64), bytes } as const;
      return { request: { model: 'm', turns: [{ role: 'user' as const, content: [image] }] } };
    };
    await start(1, 'M', showing(125));
    await start(100, 'M', showing(1));
    await turn(20_000);
    expect(shares()).toBe('1 M');
    await end(1, 'M');
    expect(shares()).toBe('75 M');
  });
});
