import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Target } from '../../../shared/contract.js';
import { type Delta, type DeltasMessage, deltasSchema } from '../../../shared/protocol/deltas.js';
import type { Mark } from '../../../shared/protocol/parts.js';
import { DeltaPublisher } from '../../../workers/job/delta-publisher.js';
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

/** The reply of a job that runs here. */
function open(id: string, replyTo: string, { writer, isCalling = false, ignored }: Own = {}) {
  const job = takeJob({ id });
  job.progress = { hasBegun: false, ignored, sent: undefined };
  jobs.open(job);
  const parameters = isCalling ? { tools: [{ name: 'f' }] } : undefined;
  return publisher.open(job, { replyTo, turns: [], parameters }, writer);
}

interface Own {
  writer?: Target;
  /** Whether the chat has tools. */
  isCalling?: boolean;
  ignored?: string[];
}

const turn = async () => {
  for (let n = 0; n < 3; n += 1) await new Promise((resolve) => setImmediate(resolve));
};
const windowEnds = () => {
  vi.advanceTimersByTime(windowMs);
  return turn();
};
/** The deltas of each message to this API process. */
const messagesTo = (api: string): Delta[][] =>
  relay.published
    .filter(({ topic }) => topic === `deltas.${api}`)
    .map(({ message }) => (message as DeltasMessage).deltas);
const deltasTo = (api: string) => messagesTo(api).flat();
const textsTo = (api: string) => messagesTo(api).map((deltas) => deltas.map(({ text }) => text));
const resend = (jobId: string, api: string, from: number) => publisher.onResend({ v: 1, jobId, api, from });

describe('DeltaPublisher', () => {
  it('sends the first delta at once, what follows when the window is over, and who writes it', async () => {
    const writer: Target = { provider: 'bedrock', model: 'm' };
    const stream = open('job', 'x', { writer });
    expect(stream.hasBegun).toBe(false);
    stream.append('one');
    expect(stream.hasBegun).toBe(true);
    await turn();
    stream.append('two');
    stream.append('three');
    await turn();
    const own = { jobId: 'job', callId: stream.callId, ...writer };
    expect(messagesTo('x')).toEqual([[{ ...own, at: 0, text: 'one' }]]);
    await windowEnds();
    expect(messagesTo('x')[1]).toEqual([{ ...own, at: 3, text: 'twothree' }]);
    await windowEnds();
    expect(relay.published).toHaveLength(2);
  });

  it('sends at once what comes when a window has passed since the last message was begun', async () => {
    const stream = open('job', 'x');
    stream.append('one');
    await turn();
    vi.advanceTimersByTime(windowMs - 1);
    stream.append('two');
    await turn();
    expect(textsTo('x')).toEqual([['one']]);
    const held = Promise.withResolvers<void>();
    taking = held.promise;
    vi.advanceTimersByTime(1);
    await turn();
    stream.append('three');
    vi.advanceTimersByTime(windowMs);
    held.resolve();
    await turn();
    vi.advanceTimersByTime(0);
    await turn();
    expect(textsTo('x')).toEqual([['one'], ['two'], ['three']]);
  });

  it('sends what several streams have in one message to each API process', async () => {
    const [one, two, other] = [open('one', 'x'), open('two', 'x'), open('other', 'y')];
    for (const stream of [one, two, other]) stream.append('first');
    await turn();
    one.append('1');
    two.append('2');
    await turn();
    // Nothing is urgent.
    expect(textsTo('x')).toHaveLength(1);
    await windowEnds();
    expect(textsTo('x')).toEqual([
      ['first', 'first'],
      ['1', '2'],
    ]);
    expect(textsTo('y')).toEqual([['first']]);
  });

  it('has one message on its way to an API process, lets no other wait for that, and goes on if it is not taken', async () => {
    const held = Promise.withResolvers<void>();
    taking = held.promise;
    const [slow, other] = [open('slow', 'x'), open('other', 'y')];
    slow.append('a');
    await turn();
    slow.append('b');
    open('late', 'x').append('c');
    other.append('d');
    await windowEnds();
    await windowEnds();
    expect(textsTo('x')).toEqual([['a']]);
    expect(textsTo('y')).toEqual([['d']]);
    held.reject(new Error('store down'));
    await turn();
    expect(textsTo('x')).toEqual([['a'], ['b', 'c']]);
  });

  it('has one message on its way also when a stream ends before another has begun', async () => {
    const ending = open('ending', 'x');
    const stream = open('job', 'x');
    ending.append('a');
    await turn();
    ending[Symbol.dispose]();
    taking = new Promise(() => {});
    stream.append('b');
    await turn();
    resend('job', 'x', 0);
    await turn();
    expect(textsTo('x')).toEqual([['a'], ['b']]);
  });

  it.each([
    ['characters that need two units', `a${'🦉'.repeat(500_000)}`],
    ['characters that need an escape', '\u0001'.repeat(1_000_000)],
  ])('sends a megabyte of %s in order, in messages that the relay takes', async (_, text) => {
    open('job', 'x').append(text);
    for (let n = 0; n < 20; n += 1) await turn();
    const pieces = deltasTo('x');
    expect(pieces.length).toBeGreaterThan(1);
    expect(pieces.map((piece) => piece.text).join('') === text).toBe(true);
    expect(pieces.filter((piece) => !piece.text.isWellFormed())).toEqual([]);
    let at = 0;
    for (const piece of pieces) {
      expect(piece.at).toBe(at);
      at += piece.text.length;
    }
  });

  it('sends the deltas of thousands of streams in messages that the relay takes', async () => {
    const ids = Array.from({ length: 6000 }, (_, n) => `00000000-0000-0000-0000-${1e11 + n}`);
    for (const id of ids) open(id, 'x').append('\u0001');
    for (let n = 0; n < 5; n += 1) await turn();
    expect(deltasTo('x').map(({ jobId }) => jobId)).toEqual(ids);
  });

  it('lets no stream wait for the end of a long text', async () => {
    open('long', 'x').append('a'.repeat(200_000));
    open('short', 'x').append('b');
    for (let n = 0; n < 5; n += 1) await turn();
    const jobs = messagesTo('x').map((deltas) => deltas.map(({ jobId }) => jobId));
    expect(jobs).toEqual([['long'], ['short', 'long'], ['long']]);
  });

  it('holds half a surrogate pair back until the other half is there', async () => {
    const stream = open('job', 'x');
    const [high = '', low = ''] = '🦉'.split('');
    stream.append(`a${high}`);
    await turn();
    stream.append(`${low}b`);
    await windowEnds();
    expect(deltasTo('x')).toMatchObject([
      { at: 0, text: 'a' },
      { at: 1, text: '🦉b' },
    ]);
  });

  it.each([
    ['also when it ends at once', true],
    ['and that alone', false],
  ])('says at once that a job has begun anew, %s', async (_, ends) => {
    const stream = open('job', 'x');
    stream.announceRestart();
    if (ends) stream[Symbol.dispose]();
    await turn();
    expect(deltasTo('x')).toEqual([{ jobId: 'job', callId: stream.callId, at: 0, text: '' }]);
  });
});

describe('a stream with calls', () => {
  const call = (at: number, signature?: string): Mark => ({
    ...{ kind: 'call', at, id: `call at ${at}`, name: 'f' },
    ...(signature && { signature }),
  });
  /** Each message in the text that travels. */
  const writtenTo = (api: string) =>
    relay.published
      .filter(({ topic }) => topic === `deltas.${api}`)
      .map(({ message }) => JSON.stringify(message));

  it('is sent in messages of version 2, one at a time with those of other chats, which stay as they are', async () => {
    const held = Promise.withResolvers<void>();
    taking = held.promise;
    const [text, calling] = [open('text', 'x'), open('calling', 'x', { isCalling: true, ignored: ['seed'] })];
    calling.append('{}', call(0));
    text.append('Hi \u0000🎉');
    await windowEnds();
    expect(writtenTo('x')).toHaveLength(1);
    held.resolve();
    await turn();
    await turn();
    expect(writtenTo('x')).toEqual([
      `{"v":1,"deltas":[{"jobId":"text","callId":"${text.callId}","at":0,"text":"Hi \\u0000🎉"}]}`,
      `{"v":2,"deltas":[{"jobId":"calling","callId":"${calling.callId}","marks":[${JSON.stringify(call(0))}],"ignored":["seed"],"at":0,"text":"{}"}]}`,
    ]);
    expect(deltasSchema.parse(JSON.parse(writtenTo('x')[1] ?? '')).deltas).toEqual(deltasTo('x').slice(1));
  });

  it('waits for the window, also while chats of the other version are written', async () => {
    const [text, calling] = [open('text', 'x'), open('calling', 'x', { isCalling: true })];
    const write = () => {
      text.append('a');
      calling.append('b');
    };
    write();
    await turn();
    relay.published.length = 0;
    write();
    vi.advanceTimersByTime(windowMs);
    for (let n = 0; n < 20; n += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      write();
    }
    expect(writtenTo('x')).toHaveLength(2);
    await windowEnds();
    expect(writtenTo('x')).toHaveLength(4);
  });

  it('stays within what the relay takes, however many signatures there are, and stops at one that is too long', async () => {
    const stream = open('job', 'x', { isCalling: true });
    let written = '';
    for (let n = 0; n < 40; n += 1) {
      const mark = call(written.length, '\u2028'.repeat(20_000));
      stream.append('{"text":"🦉🦉🦉"}', mark);
      written += '{"text":"🦉🦉🦉"}';
    }
    stream.append('{}', call(written.length, 'x'.repeat(60_000)));
    stream.append('Bye', { kind: 'text', at: written.length + 2 });
    for (let n = 0; n < 60; n += 1) await turn();
    const sent = deltasTo('x');
    expect(sent.length).toBeGreaterThan(10);
    expect(sent.map(({ text }) => text).join('')).toBe(written);
    // What follows a mark has it.
    const places = new Set(sent.flatMap(({ marks = [] }) => marks.map(({ at }) => at)));
    expect(places.size).toBe(40);
    for (const { at, text, marks = [] } of sent)
      for (const place of places)
        if (place >= at && place < at + text.length) expect(marks.map((mark) => mark.at)).toContain(place);
  });
});

describe('a resend', () => {
  const written = async (text: string) => {
    const stream = open('job', 'x');
    if (text) stream.append(text);
    await turn();
    relay.published.length = 0;
    return stream;
  };

  it('sends the text from there on to the process that asks, and then what follows to both', async () => {
    const stream = await written('abcdef');
    resend('job', 'y', 2);
    await turn();
    expect(relay.published).toHaveLength(1);
    expect(deltasTo('y')).toMatchObject([{ at: 2, text: 'cdef' }]);
    stream.append('g');
    await windowEnds();
    expect(deltasTo('x')).toMatchObject([{ at: 6, text: 'g' }]);
    expect(deltasTo('y')).toMatchObject([{ at: 2 }, { at: 6, text: 'g' }]);
  });

  it('sends no more than was asked for, until it is asked again', async () => {
    const stream = await written('abc🦉ef');
    publisher.onResend({ v: 1, jobId: 'job', api: 'y', from: 0, max: 4 });
    await turn();
    stream.append('g');
    await windowEnds();
    publisher.onResend({ v: 1, jobId: 'job', api: 'y', from: 3, max: 100 });
    await turn();
    stream.append('h');
    await windowEnds();
    expect(deltasTo('y')).toMatchObject([
      { at: 0, text: 'abc' },
      { at: 3, text: '🦉efg' },
      { at: 8, text: 'h' },
    ]);
  });

  it.each([
    ['abcdef', 6],
    ['abcdef', 1000],
    ['', 0],
  ])('of %j from %i says where the text ends', async (text, from) => {
    await written(text);
    resend('job', 'y', from);
    await turn();
    expect(deltasTo('y')).toMatchObject([{ at: text.length, text: '' }]);
  });

  it('leaves alone where the other readers at the API process are, and ends where one has left', async () => {
    const own = { v: 1, jobId: 'job', api: 'x', from: 0 } as const;
    const stream = await written('abcdef');
    publisher.onResend({ ...own, reader: 'second', from: 1 });
    publisher.onResend({ ...own, reader: 'third', from: 5 });
    await turn();
    stream.append('g');
    await windowEnds();
    publisher.onResend({ ...own, reader: 'second', max: 1, left: true });
    stream.append('h');
    await windowEnds();
    publisher.onResend({ ...own, max: 1, left: true });
    stream.append('i');
    await windowEnds();
    expect(deltasTo('x').map(({ reader = 'first', at, text }) => `${reader} ${at} ${text}`)).toEqual([
      ...['second 1 bcdef', 'third 5 f', 'first 6 g', 'second 6 g', 'third 6 g'],
      ...['first 7 h', 'third 7 h', 'third 8 i'],
    ]);
  });
});

describe('a stream that ends', () => {
  it('sends nothing more and leaves nothing', async () => {
    const stream = open('job', 'x');
    stream.append('a');
    await turn();
    stream.append('b');
    expect(ownTimers()).toBe(1);
    stream[Symbol.dispose]();
    expect(ownTimers()).toBe(0);
    expect(jobs.ofChat('job')[0]?.deltas).toBeUndefined();
    resend('job', 'x', 0);
    const short = open('short', 'x');
    short.append('sent in the next turn');
    short[Symbol.dispose]();
    await windowEnds();
    expect(textsTo('x')).toEqual([['a']]);
  });

  it('leaves the one alone that the job has begun here meanwhile', async () => {
    const before = open('job', 'x');
    const after = open('job', 'x');
    before[Symbol.dispose]();
    after.append('a');
    resend('job', 'y', 0);
    await turn();
    expect(after.callId).not.toBe(before.callId);
    expect(deltasTo('y')).toMatchObject([{ callId: after.callId, at: 0, text: 'a' }]);
  });
});
