import { beforeEach, describe, expect, it } from 'vitest';
import { PendingReplies } from '../../../../api/chat/jobs/pending-replies.js';
import type { Outcome } from '../../../../shared/protocol/outcome.js';

const job = (jobId: string) => ({ jobId, provider: 'openai' as const });
const blocked: Outcome = { kind: 'blocked', queueMs: 0, providerMs: 0 };
const other: Outcome = { kind: 'blocked', queueMs: 1, providerMs: 1 };
const later = () => Date.now() + 60_000;

let replies: PendingReplies;
beforeEach(() => {
  replies = new PendingReplies();
});

describe('PendingReplies', () => {
  it('settles those who wait for that job alone', async () => {
    const [one, two] = [replies.wait(job('one'), later()), replies.wait(job('two'), later())];
    replies.settle('two', other);
    expect(await two.outcome).toBe(other);
    expect(replies.pending()).toEqual([job('one')]);
    replies.settle('one', blocked);
    expect(await one.outcome).toBe(blocked);
    expect(replies.pending()).toEqual([]);
  });

  it('keeps to the first outcome', async () => {
    const waiting = replies.wait(job('one'), later());
    replies.settle('one', blocked);
    replies.settle('one', other);
    waiting.leave();
    expect(await waiting.outcome).toBe(blocked);
  });

  it('waits on for the attempt that follows, whichever message comes first', async () => {
    const waiting = replies.wait(job('one'), later());
    waiting.onLost(() => expect.unreachable());
    const passedOn = (attempt: number): Outcome => ({
      ...{ kind: 'failed', code: 'provider_error', retryable: true, queueMs: 0, providerMs: 0 },
      next: { provider: 'bedrock', model: 'm', attempt, fallback: [] },
    });
    replies.settle('one', passedOn(3));
    replies.settle('one', passedOn(2));
    const current = { jobId: 'one', provider: 'bedrock', model: 'm', attempt: 3, fallback: [] };
    expect(replies.pending()).toEqual([current]);
    // Whoever added the first attempt knows nothing of the others.
    expect(replies.markLost('one', Date.now())).toBe(false);
    replies.settle('one', blocked);
    expect(await waiting.outcome).toBe(blocked);
  });

  it('does nothing for a job nobody waits for', () => {
    replies.settle('one', blocked);
    replies.markLost('one', Date.now());
    expect(replies.pending()).toEqual([]);
  });

  it.each([10, 0, -1000, Number.NEGATIVE_INFINITY])(
    'settles a wait without an outcome at a deadline %d ms away, and forgets it',
    async (ms) => {
      expect(await replies.wait(job('one'), Date.now() + ms).outcome).toBeUndefined();
      expect(replies.pending()).toEqual([]);
      replies.settle('one', blocked);
    },
  );

  it('does not stop before the deadline', async () => {
    const deadline = Date.now() + 50;
    await replies.wait(job('one'), deadline).outcome;
    // Timers may fire within the last millisecond.
    expect(Date.now()).toBeGreaterThanOrEqual(deadline - 1);
  });

  it('has a lost job added again only if its record would still exist, had it ended since it was last seen', () => {
    let times = 0;
    const waiting = replies.wait(job('one'), later());
    waiting.onLost(() => {
      times += 1;
    });
    replies.recordSeen('one', Date.now() - 50_000);
    expect([replies.markLost('one', Date.now()), times]).toEqual([false, 0]);
    replies.recordSeen('one', Date.now() - 49_000);
    expect([replies.markLost('one', Date.now()), times]).toEqual([true, 1]);
    expect([replies.markLost('one', Date.now()), times]).toEqual([false, 1]);
    waiting.leave();
  });

  it('has no job added again that the store was asked for before its add was confirmed', () => {
    const askedAt = Date.now() - 1;
    const waiting = replies.wait(job('one'), later());
    waiting.onLost(() => undefined);
    expect(replies.markLost('one', askedAt)).toBe(false);
    expect(replies.markLost('one', Date.now())).toBe(true);
    waiting.leave();
  });

  it('settles a wait that its caller leaves as if the deadline had passed', async () => {
    const waiting = replies.wait(job('one'), later());
    waiting.leave();
    expect(await waiting.outcome).toBeUndefined();
    expect(replies.pending()).toEqual([]);
  });

  it('lists the pending jobs, or those whose wait began before a time', () => {
    const before = Date.now();
    const waiting = replies.wait(job('one'), later());
    expect(replies.pending({ since: before })).toEqual([]);
    expect(replies.pending({ since: Date.now() + 1 })).toEqual([job('one')]);
    expect(replies.pending()).toEqual([job('one')]);
    waiting.leave();
    expect(replies.pending({ since: Date.now() + 1 })).toEqual([]);
  });

  it('finds a job by its id as long as somebody waits for it', () => {
    const waiting = replies.wait(job('one'), later());
    replies.wait(job('two'), later());
    expect(replies.find('one')).toEqual(job('one'));
    waiting.leave();
    expect(replies.find('one')).toBeUndefined();
  });

  it('lists each background wait in one of fifteen polls, with its share of them, and the others in every poll', () => {
    for (let n = 0; n < 150; n += 1) void replies.waitInBackground(job(`background ${n}`), later());
    replies.wait(job('one'), later());
    void replies.waitInBackground(job('joined'), later());
    replies.wait(job('joined'), later());
    const polls = Array.from({ length: 15 }, (_, n) =>
      replies.pending({ pollSlot: n + 30 }).map(({ jobId }) => jobId),
    );
    for (const ids of polls) {
      expect(ids).toEqual(expect.arrayContaining(['one', 'joined']));
      expect(ids).toHaveLength(12);
    }
    expect(new Set(polls.flat()).size).toBe(152);
    expect(replies.pending()).toHaveLength(152);
  });

  it('waits for a job in the background once, however often it is asked to', async () => {
    const first = replies.waitInBackground(job('one'), later());
    await replies.waitInBackground(job('one'), later());
    expect(replies.pending()).toEqual([job('one')]);
    replies.settle('one', blocked);
    await first;
    void replies.waitInBackground(job('one'), later());
    expect(replies.pending()).toEqual([job('one')]);
  });

  it('settles everybody who waits for the job, but for those who have left', async () => {
    const [first, second, third] = [10, 20, 30].map((n) => replies.wait(job('one'), later() + n));
    expect(replies.pending()).toEqual([job('one')]);
    second?.leave();
    expect(replies.pending()).toEqual([job('one')]);
    replies.settle('one', blocked);
    expect(await Promise.all([first, second, third].map((wait) => wait?.outcome))).toEqual([
      blocked,
      undefined,
      blocked,
    ]);
    expect(replies.pending()).toEqual([]);
  });

  it('has a lost job added again once, by those whose add was confirmed', () => {
    const reEnqueue: string[] = [];
    const [added, adding, left] = [0, 1, 2].map(() => replies.wait(job('one'), later()));
    added?.onLost(() => reEnqueue.push('added'));
    left?.onLost(() => reEnqueue.push('left'));
    left?.leave();
    expect(replies.markLost('other', Date.now())).toBe(false);
    expect(reEnqueue).toEqual([]);
    expect(replies.markLost('one', Date.now())).toBe(true);
    expect(replies.markLost('one', Date.now())).toBe(false);
    expect(reEnqueue).toEqual(['added']);
    for (const wait of [added, adding]) wait?.leave();
  });
});
