import { beforeEach, describe, expect, it, vi } from 'vitest';
import { ReplyReaders } from '../../../../api/chat/jobs/reply-readers.js';

const sink = { begin: () => undefined, write: () => true, drained: async () => undefined };
const job = { jobId: 'job', provider: 'openai', isStored: true } as const;
const limited = expect.objectContaining({ code: 'rate_limited', status: 429 });

const ask = vi.fn();
let readers: ReplyReaders;
const join = (user: string) => readers.open(job, { sink, user, isJoined: true });
const asked = () => ask.mock.calls.map(([, what]: unknown[]) => what);
beforeEach(() => {
  ask.mockReset();
  readers = new ReplyReaders(ask);
});

describe('ReplyReaders', () => {
  it('lets a user join 20 streams at once, and keeps nobody else out (finding S7)', () => {
    const streams = Array.from({ length: 20 }, () => join('one'));
    expect(() => join('one')).toThrow(limited);
    streams.push(join('another'));
    // The one who asks for a new chat is limited otherwise.
    streams.push(readers.open({ ...job, jobId: 'new' }, { sink, user: 'one', isJoined: false }));
    streams.shift()?.[Symbol.dispose]();
    streams.push(join('one'));
    expect(() => join('one')).toThrow(limited);
    for (const stream of streams) stream[Symbol.dispose]();
    expect(readers.jobIds).toEqual([]);
  });

  it('tells the worker of a reader who leaves a stored chat before its end (finding S7)', () => {
    const [first, joined] = [readers.open(job, { sink, user: 'one', isJoined: false }), join('two')];
    ask.mockReset();
    joined[Symbol.dispose]();
    expect(asked()).toEqual([{ reader: expect.any(String), from: 0, max: 1, left: true }]);
    first[Symbol.dispose]();
    expect(asked()[1]).toEqual({ reader: undefined, from: 0, max: 1, left: true });
  });

  it('tells nothing of a reader who has read all, nor of a chat that ends with its request', async () => {
    const read = readers.open(job, { sink, user: 'one', isJoined: false });
    await read.finish({ text: 'all' });
    read[Symbol.dispose]();
    readers.open({ ...job, isStored: false }, { sink, user: 'one', isJoined: false })[Symbol.dispose]();
    expect(ask).not.toHaveBeenCalled();
  });
});
