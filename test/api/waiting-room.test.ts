import { beforeEach, describe, expect, it } from 'vitest';
import { createWaitingRoom, type WaitingRoom } from '../../api/waiting-room.js';
import type { Outcome } from '../../shared/outcome.js';

const job = (jobId: string) => ({ jobId, provider: 'openai' as const });
const blocked: Outcome = { kind: 'blocked', queueMs: 0, providerMs: 0 };
const other: Outcome = { kind: 'blocked', queueMs: 1, providerMs: 1 };
const later = () => Date.now() + 60_000;

let room: WaitingRoom;
beforeEach(() => {
  room = createWaitingRoom();
});

describe('createWaitingRoom', () => {
  it('gives the outcome to the waiter of that job alone', async () => {
    const [one, two] = [room.wait(job('one'), later()), room.wait(job('two'), later())];
    room.settle('two', other);
    expect(await two).toBe(other);
    expect(room.waiting()).toEqual([job('one')]);
    room.settle('one', blocked);
    expect(await one).toBe(blocked);
    expect(room.waiting()).toEqual([]);
  });

  it('keeps to the first outcome', async () => {
    const waiting = room.wait(job('one'), later());
    room.settle('one', blocked);
    room.settle('one', other);
    room.giveUp('one');
    expect(await waiting).toBe(blocked);
  });

  it('does nothing for a job nobody waits for', () => {
    room.settle('one', blocked);
    room.giveUp('one');
    expect(room.waiting()).toEqual([]);
  });

  it.each([10, 0, -1000, Number.NEGATIVE_INFINITY])(
    'stops at a deadline %d ms away, and forgets the waiter',
    async (ms) => {
      expect(await room.wait(job('one'), Date.now() + ms)).toBeUndefined();
      expect(room.waiting()).toEqual([]);
      room.settle('one', blocked);
    },
  );

  it('does not stop before the deadline', async () => {
    const deadline = Date.now() + 50;
    await room.wait(job('one'), deadline);
    // Timers may fire within the last millisecond.
    expect(Date.now()).toBeGreaterThanOrEqual(deadline - 1);
  });

  it('gives up as if the deadline had passed', async () => {
    const waiting = room.wait(job('one'), later());
    room.giveUp('one');
    expect(await waiting).toBeUndefined();
    expect(room.waiting()).toEqual([]);
  });

  it('lists who waits, or has waited since before a time', () => {
    const before = Date.now();
    void room.wait(job('one'), later());
    expect(room.waiting({ since: before })).toEqual([]);
    expect(room.waiting({ since: Date.now() + 1 })).toEqual([job('one')]);
    expect(room.waiting()).toEqual([job('one')]);
    room.giveUp('one');
    expect(room.waiting({ since: Date.now() + 1 })).toEqual([]);
  });

  it('refuses a second wait for the same job, and leaves the first alone', async () => {
    const first = room.wait(job('one'), later());
    await expect(room.wait(job('one'), later())).rejects.toThrow(TypeError);
    room.settle('one', blocked);
    expect(await first).toBe(blocked);
  });
});
