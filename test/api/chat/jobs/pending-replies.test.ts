import { beforeEach, describe, expect, it } from 'vitest';
import { createPendingReplies, type PendingReplies } from '../../../../api/chat/jobs/pending-replies.js';
import type { Outcome } from '../../../../shared/protocol/outcome.js';

const job = (jobId: string) => ({ jobId, provider: 'openai' as const });
const blocked: Outcome = { kind: 'blocked', queueMs: 0, providerMs: 0 };
const other: Outcome = { kind: 'blocked', queueMs: 1, providerMs: 1 };
const later = () => Date.now() + 60_000;

let room: PendingReplies;
beforeEach(() => {
  room = createPendingReplies();
});

describe('createPendingReplies', () => {
  it('gives the outcome to the waiter of that job alone', async () => {
    const [one, two] = [room.wait(job('one'), later()), room.wait(job('two'), later())];
    room.settle('two', other);
    expect(await two.outcome).toBe(other);
    expect(room.waiting()).toEqual([job('one')]);
    room.settle('one', blocked);
    expect(await one.outcome).toBe(blocked);
    expect(room.waiting()).toEqual([]);
  });

  it('keeps to the first outcome', async () => {
    const waiting = room.wait(job('one'), later());
    room.settle('one', blocked);
    room.settle('one', other);
    waiting.leave();
    expect(await waiting.outcome).toBe(blocked);
  });

  it('does nothing for a job nobody waits for', () => {
    room.settle('one', blocked);
    room.vanished('one');
    expect(room.waiting()).toEqual([]);
  });

  it.each([10, 0, -1000, Number.NEGATIVE_INFINITY])(
    'stops at a deadline %d ms away, and forgets the waiter',
    async (ms) => {
      expect(await room.wait(job('one'), Date.now() + ms).outcome).toBeUndefined();
      expect(room.waiting()).toEqual([]);
      room.settle('one', blocked);
    },
  );

  it('does not stop before the deadline', async () => {
    const deadline = Date.now() + 50;
    await room.wait(job('one'), deadline).outcome;
    // Timers may fire within the last millisecond.
    expect(Date.now()).toBeGreaterThanOrEqual(deadline - 1);
  });

  it('puts a job back only if its record would still be there, had it ended since it was last seen', () => {
    let times = 0;
    const waiting = room.wait(job('one'), later());
    waiting.onLost(() => {
      times += 1;
    });
    room.seen('one', Date.now() - 50_000);
    expect([room.vanished('one'), times]).toEqual([false, 0]);
    room.seen('one', Date.now() - 49_000);
    expect([room.vanished('one'), times]).toEqual([true, 1]);
    expect([room.vanished('one'), times]).toEqual([false, 1]);
    waiting.leave();
  });

  it('lets a waiter leave as if the deadline had passed', async () => {
    const waiting = room.wait(job('one'), later());
    waiting.leave();
    expect(await waiting.outcome).toBeUndefined();
    expect(room.waiting()).toEqual([]);
  });

  it('lists who waits, or has waited since before a time', () => {
    const before = Date.now();
    const waiting = room.wait(job('one'), later());
    expect(room.waiting({ since: before })).toEqual([]);
    expect(room.waiting({ since: Date.now() + 1 })).toEqual([job('one')]);
    expect(room.waiting()).toEqual([job('one')]);
    waiting.leave();
    expect(room.waiting({ since: Date.now() + 1 })).toEqual([]);
  });

  it('finds a job by its id as long as somebody waits for it', () => {
    const waiting = room.wait(job('one'), later());
    room.wait(job('two'), later());
    expect(room.find('one')).toEqual(job('one'));
    waiting.leave();
    expect(room.find('one')).toBeUndefined();
  });

  it('has each patient wait looked at in one of fifteen turns, with its share of them, and the others in all', () => {
    for (let n = 0; n < 150; n += 1) room.wait(job(`patient ${n}`), later(), { isBackground: true });
    room.wait(job('one'), later());
    room.wait(job('joined'), later(), { isBackground: true });
    room.wait(job('joined'), later());
    const turns = Array.from({ length: 15 }, (_, turn) =>
      room.waiting({ turn: turn + 30 }).map(({ jobId }) => jobId),
    );
    for (const ids of turns) {
      expect(ids).toEqual(expect.arrayContaining(['one', 'joined']));
      expect(ids).toHaveLength(12);
    }
    expect(new Set(turns.flat()).size).toBe(152);
    expect(room.waiting()).toHaveLength(152);
  });

  it('gives the outcome to everybody who waits for the job, but for those who have left', async () => {
    const [first, second, third] = [10, 20, 30].map((n) => room.wait(job('one'), later() + n));
    expect(room.waiting()).toEqual([job('one')]);
    second?.leave();
    expect(room.waiting()).toEqual([job('one')]);
    room.settle('one', blocked);
    expect(await Promise.all([first, second, third].map((wait) => wait?.outcome))).toEqual([
      blocked,
      undefined,
      blocked,
    ]);
    expect(room.waiting()).toEqual([]);
  });

  it('has a job that vanished put back once, by those whose add was answered', () => {
    const reEnqueue: string[] = [];
    const [added, adding, left] = [0, 1, 2].map(() => room.wait(job('one'), later()));
    added?.onLost(() => reEnqueue.push('added'));
    left?.onLost(() => reEnqueue.push('left'));
    left?.leave();
    expect(room.vanished('other')).toBe(false);
    expect(reEnqueue).toEqual([]);
    expect(room.vanished('one')).toBe(true);
    expect(room.vanished('one')).toBe(false);
    expect(reEnqueue).toEqual(['added']);
    for (const wait of [added, adding]) wait?.leave();
  });
});
