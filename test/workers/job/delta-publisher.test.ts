import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Target } from '../../../shared/contracts/contract.js';
import {
  type Delta,
  deltasSchema,
  type Mark,
  type Resend,
  type WrittenDeltas,
} from '../../../shared/protocol/parts.js';
import { DeltaPublisher } from '../../../workers/job/delta-publisher.js';
import type { DeltaStream } from '../../../workers/job/delta-stream.js';
import { RunningJobs } from '../../../workers/job/running-jobs.js';
import { countOwnTimers } from '../../support/own-timers.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { createRecordingRelay } from '../../support/recording-relay.js';
import { takeJob } from '../../support/running-jobs.js';

const windowMs = 20;
const { log } = createRecordingLog();
let relay: ReturnType<typeof createRecordingRelay>;
/** The relay waits for this before it takes a message. */
let taking: Promise<void>;
let publisher: DeltaPublisher;
let jobs: RunningJobs;

let ownTimers: () => number;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  ownTimers = countOwnTimers('workers/job');
  relay = createRecordingRelay();
  taking = Promise.resolve();
  jobs = new RunningJobs();
  const send = (topic: string, message: object) => relay.send(topic, message).then(() => taking);
  publisher = new DeltaPublisher({ jobs, relay: { send }, windowMs, log });
});
afterEach(() => {
  vi.useRealTimers();
});

/** The reply of a job that runs here, whose model may refuse a hint. */
function open(
  id: string,
  replyTo: string,
  { refuses = false, writer }: { refuses?: boolean; writer?: Target } = {},
) {
  const job = takeJob({ id });
  const none = { isAlive: false, hasBegun: false, isShown: false, sent: undefined };
  job.progress = { ...none, ignored: refuses ? ['seed'] : undefined };
  jobs.open(job);
  return publisher.open(job, { replyTo }, writer);
}

const turns = async (count: number) => {
  for (let n = 0; n < count; n += 1) await new Promise((resolve) => setImmediate(resolve));
};
const windowEnds = () => {
  vi.advanceTimersByTime(windowMs);
  return turns(3);
};
const write = (stream: DeltaStream, ...pieces: string[]) => {
  for (const piece of pieces) stream.append(piece);
  return turns(3);
};
const resend = (jobId: string, api: string, place: Partial<Resend>) => {
  publisher.onResend({ v: 1, jobId, api, from: 0, ...place });
  return turns(3);
};
/** The deltas of each message to this API process. */
const messagesTo = (api: string): Delta[][] =>
  relay.published
    .filter(({ topic }) => topic === `deltas.${api}`)
    .map(({ message }) => (message as WrittenDeltas).deltas);
const deltasTo = (api: string) => messagesTo(api).flat();
/** In short: the job, the place and the text of each delta. */
const sentTo = (api: string) =>
  messagesTo(api).map((deltas) => deltas.map(({ jobId, at, text }) => `${jobId} ${at} ${text}`));

const call = (at: number, extra?: string): Mark => ({
  ...{ kind: 'call', at, id: `call at ${at}`, name: 'f' },
  ...(extra && { extra }),
});

describe('DeltaPublisher', () => {
  it('pieces of a text -> the first is sent at once, the others when the window is over, with their writer', async () => {
    const writer: Target = { provider: 'bedrock', model: 'm' };
    const stream = open('job', 'x', { writer });
    await write(stream, 'one');
    await write(stream, 'two', 'three');
    const own = { jobId: 'job', callId: stream.callId, ...writer };
    expect(messagesTo('x')).toEqual([[{ ...own, at: 0, text: 'one' }]]);
    await windowEnds();
    expect(messagesTo('x').slice(1)).toEqual([[{ ...own, at: 3, text: 'twothree' }]]);
    await windowEnds();
    expect(relay.published).toHaveLength(2);
  });

  it('a window has passed since the last message was begun -> what comes is sent at once', async () => {
    const stream = open('job', 'x');
    await write(stream, 'one');
    vi.advanceTimersByTime(windowMs - 1);
    await write(stream, 'two');
    expect(sentTo('x')).toEqual([['job 0 one']]);
    const held = Promise.withResolvers<void>();
    taking = held.promise;
    vi.advanceTimersByTime(1);
    await turns(3);
    stream.append('three');
    vi.advanceTimersByTime(windowMs);
    held.resolve();
    await turns(3);
    vi.advanceTimersByTime(0);
    await turns(3);
    expect(sentTo('x')).toEqual([['job 0 one'], ['job 3 two'], ['job 6 three']]);
  });

  it('a message on its way to an API process -> the next waits until it is taken or not, and no other process does', async () => {
    // The link outlives a stream that ends while another has not begun.
    const [ending, slow, other] = [open('ending', 'x'), open('slow', 'x'), open('other', 'y')];
    await write(ending, 'z');
    ending[Symbol.dispose]();
    const held = Promise.withResolvers<void>();
    taking = held.promise;
    await write(slow, 'a');
    slow.append('b');
    open('late', 'x').append('c');
    other.append('d');
    await windowEnds();
    await windowEnds();
    expect([sentTo('x'), sentTo('y')]).toEqual([[['ending 0 z'], ['slow 0 a']], [['other 0 d']]]);
    held.reject(new Error('store down'));
    await turns(3);
    expect(sentTo('x')[2]).toEqual(['slow 1 b', 'late 0 c']);
  });

  const names = (count: number) => Array.from({ length: count }, (_, n) => `${'0'.repeat(24)}${1e11 + n}`);
  it.each([
    ['characters that need two units', ['job'], `a${'🦉'.repeat(500_000)}`, ''],
    ['characters that need an escape', ['job'], '\u0001'.repeat(1_000_000), ''],
    ['thousands of streams', names(6000), '\u0001', ''],
    ['long texts of calls with other fields', names(10), '\u0001'.repeat(100_000), '\u2028'.repeat(40_000)],
    ['short texts of calls with other fields', names(10), '{}', '\u2028'.repeat(40_000)],
  ])('%s -> sent in order, in messages that the relay takes', async (_, ids, text, extra) => {
    for (const id of ids)
      if (extra) open(id, 'x').append(text, call(0, extra));
      else open(id, 'x').append(text);
    await turns(60);
    const sent = new Map<string, string>();
    for (const delta of deltasTo('x')) {
      const before = sent.get(delta.jobId) ?? '';
      expect([delta.at, delta.text.isWellFormed()]).toEqual([before.length, true]);
      sent.set(delta.jobId, before + delta.text);
    }
    expect(new Set(sent.keys())).toEqual(new Set(ids));
    expect([...sent.values()].every((whole) => whole === text)).toBe(true);
  });

  it('a long text -> no stream waits for its end', async () => {
    open('long', 'x').append('a'.repeat(200_000));
    open('short', 'x').append('b');
    await turns(15);
    const ids = messagesTo('x').map((deltas) => deltas.map(({ jobId }) => jobId));
    expect(ids).toEqual([['long'], ['short', 'long'], ['long']]);
  });

  it.each([true, false])(
    'a job that begins anew -> that is said at once, also when it ends: %s',
    async (ends) => {
      const stream = open('job', 'x');
      stream.announceRestart();
      if (ends) stream[Symbol.dispose]();
      await turns(3);
      expect(deltasTo('x')).toEqual([{ jobId: 'job', callId: stream.callId, at: 0, text: '' }]);
    },
  );
});

describe('a stream with calls', () => {
  /** Each message as it travels. */
  const writtenTo = () => relay.published.map(({ message }) => JSON.stringify(message));

  it('beside other chats -> they share a message, each with its marks and the hints that were ignored', async () => {
    const [text, calling] = [open('text', 'x'), open('calling', 'x', { refuses: true })];
    calling.append('{}', call(0));
    text.append('Hi \u0000🎉');
    await windowEnds();
    expect(writtenTo()).toEqual([
      `{"v":1,"deltas":[{"jobId":"calling","callId":"${calling.callId}","marks":[${JSON.stringify(call(0))}],"ignored":["seed"],"at":0,"text":"{}"},{"jobId":"text","callId":"${text.callId}","at":0,"text":"Hi \\u0000🎉"}]}`,
    ]);
    const read = writtenTo().flatMap((written) => deltasSchema.parse(JSON.parse(written)).deltas);
    expect(read).toEqual(deltasTo('x'));
  });

  it('many calls with other fields -> messages that the relay takes, each with its marks, until one that is too long', async () => {
    const stream = open('job', 'x');
    const piece = '{"text":"🦉🦉🦉"}';
    const places = Array.from({ length: 40 }, (_, n) => n * piece.length);
    for (const at of places) stream.append(piece, call(at, '\u2028'.repeat(20_000)));
    stream.append('{}', call(40 * piece.length, 'x'.repeat(60_000)));
    stream.append('Bye', { kind: 'text', at: 40 * piece.length + 2 });
    await turns(180);
    const sent = deltasTo('x');
    expect(sent.map(({ text }) => text).join('')).toBe(piece.repeat(40));
    for (const { at, text, marks = [] } of sent) {
      // One more may be there, of what begins where the text ends.
      const own = places.filter((place) => place >= at && place < at + text.length);
      const all = [...own, at + text.length].slice(0, marks.length);
      expect(marks.map((mark) => mark.at)).toEqual(all.length < own.length ? own : all);
    }
  });
});

describe('a resend', () => {
  it.each([
    ['abcdef', 2, 'job 2 cdef'],
    ['abcdef', 6, 'job 6 '],
    ['abcdef', 1000, 'job 6 '],
    ['', 0, 'job 0 '],
  ])(
    'of %j from %i on -> the process that asks gets the rest, and both get what follows',
    async (text, from, rest) => {
      const stream = open('job', 'x');
      await write(stream, text);
      await resend('job', 'y', { from });
      expect(sentTo('y')).toEqual([[rest]]);
      relay.published.length = 0;
      await write(stream, 'g');
      await windowEnds();
      const next = [[`job ${text.length} g`]];
      expect([sentTo('x'), sentTo('y')]).toEqual([next, next]);
    },
  );

  it('of so many characters -> no more is sent, until it is asked again', async () => {
    const stream = open('job', 'x');
    await write(stream, 'abc🦉ef');
    await resend('job', 'y', { max: 4 });
    await write(stream, 'g');
    await windowEnds();
    await resend('job', 'y', { from: 3, max: 100 });
    await write(stream, 'h');
    await windowEnds();
    expect(sentTo('y')).toEqual([['job 0 abc'], ['job 3 🦉efg'], ['job 8 h']]);
  });

  it('for one reader at an API process -> the others stay where they are; one that has left gets no more', async () => {
    const stream = open('job', 'x');
    await write(stream, 'abcdef');
    await resend('job', 'x', { reader: 'second', from: 1 });
    await resend('job', 'x', { reader: 'third', from: 5 });
    const next = async (text: string) => {
      await write(stream, text);
      await windowEnds();
    };
    await next('g');
    await resend('job', 'x', { reader: 'second', max: 1, left: true });
    await next('h');
    await resend('job', 'x', { max: 1, left: true });
    await next('i');
    expect(deltasTo('x').map(({ reader = 'first', at, text }) => `${reader} ${at} ${text}`)).toEqual([
      ...['first 0 abcdef', 'second 1 bcdef', 'third 5 f', 'first 6 g', 'second 6 g', 'third 6 g'],
      ...['first 7 h', 'third 7 h', 'third 8 i'],
    ]);
  });
});

describe('a stream that ends', () => {
  it('with text that was not sent -> sends nothing more and leaves nothing', async () => {
    const stream = open('job', 'x');
    await write(stream, 'a');
    stream.append('b');
    expect(ownTimers()).toBe(1);
    stream[Symbol.dispose]();
    expect([ownTimers(), jobs.ofChat('job')[0]?.deltas]).toEqual([0, undefined]);
    await resend('job', 'x', {});
    const short = open('short', 'x');
    short.append('sent in the next turn');
    short[Symbol.dispose]();
    await windowEnds();
    expect(sentTo('x')).toEqual([['job 0 a']]);
  });

  it('while the job has begun here anew -> the other stream is left alone', async () => {
    const [before, after] = [open('job', 'x'), open('job', 'x')];
    await write(after, 'a');
    await resend('job', 'y', {});
    before[Symbol.dispose]();
    await resend('job', 'z', {});
    expect(after.callId).not.toBe(before.callId);
    for (const api of ['y', 'z'])
      expect(deltasTo(api)).toEqual([{ jobId: 'job', callId: after.callId, at: 0, text: 'a' }]);
  });
});
