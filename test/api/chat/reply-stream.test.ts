import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Completion } from '../../../api/chat/chat-result.js';
import {
  type DeltaSink,
  type ReplySource,
  ReplyStream,
  type TextPosition,
} from '../../../api/chat/reply-stream.js';
import { Failure } from '../../../shared/failures.js';
import type { Delta, Mark } from '../../../shared/protocol/parts.js';
import { countOwnTimers } from '../../support/own-timers.js';

let ownTimers: () => number;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  ownTimers = countOwnTimers('api/chat');
});
afterEach(() => {
  vi.useRealTimers();
});

/** A client: reads everything, or only as much as the test lets it. */
class Reader implements DeltaSink {
  readonly pieces: string[] = [];
  readonly positions: TextPosition[] = [];
  /** Each with the length of the text that was written before it. */
  readonly marks: [Mark, number][] = [];
  source: ReplySource | undefined;
  hasBegun = false;
  /** Pieces that came after it had refused further ones. */
  overruns = 0;
  mayRead = () => true;
  #isFull = false;
  #drained = Promise.withResolvers<void>();

  get text(): string {
    return this.pieces.join('');
  }

  begin(source?: ReplySource): void {
    this.hasBegun = true;
    this.source ??= source;
  }

  mark(mark: Mark): void {
    this.marks.push([mark, this.text.length]);
  }

  write(text: string, position: TextPosition): boolean {
    this.pieces.push(text);
    this.positions.push(position);
    if (this.#isFull) this.overruns += 1;
    this.#isFull = !this.mayRead();
    return !this.#isFull;
  }

  async drained(): Promise<void> {
    if (!this.mayRead()) await this.#drained.promise;
    this.#isFull = false;
  }

  drain(): Promise<void> {
    this.#drained.resolve();
    this.#drained = Promise.withResolvers();
    return turn();
  }

  leave(): Promise<void> {
    this.#drained.reject(new Error('left'));
    return turn();
  }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const completion = (text: string, callId?: string): Completion => ({
  ...{ kind: 'ok', text, model: 'm', queueMs: 0, providerMs: 0 },
  ...(callId !== undefined && { callId }),
});
const delta = (at: number, text: string, callId = 'call'): Delta => ({ jobId: 'job', callId, at, text });
const marked = ({ text, ...place }: Delta, marks: readonly Mark[]): Delta => {
  const own = marks.filter(({ at }) => at >= place.at && at <= place.at + text.length);
  return { ...place, text, ...(own.length > 0 && { marks: own }) };
};
const call = (at: number, id = `call at ${at}`): Mark => ({ kind: 'call', at, id, name: 'f' });

function open({ from, isJoined = false }: { from?: TextPosition; isJoined?: boolean } = {}) {
  const reader = new Reader();
  const asked: number[] = [];
  const failures: Failure[] = [];
  const requestResend = (offset: number) => void asked.push(offset);
  const onFailure = (failure: Failure) => void failures.push(failure);
  const stream = new ReplyStream({ sink: reader, from, isJoined, requestResend, onFailure });
  return { reader, asked, stream, failures };
}

/** The deltas of a text that is cut at these places. */
function cut(text: string, places: readonly number[]): Delta[] {
  const ends = [...new Set([...places.map((place) => 1 + (place % text.length)), text.length])];
  ends.sort((a, b) => a - b);
  return ends.map((end, n) => delta(ends[n - 1] ?? 0, text.slice(ends[n - 1] ?? 0, end)));
}

const chaos = fc.record({
  text: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }),
  cuts: fc.array(fc.nat(200), { maxLength: 12 }),
  /** The deltas that arrive, in any order and any number of times, and what else happens. */
  events: fc.array(fc.oneof(fc.nat(20), fc.constantFrom('report' as const, 'drain' as const))),
  /** Whether the worker answers a request for a resend. */
  answers: fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }),
  /** Whether the reader takes more after a piece. */
  reads: fc.array(fc.boolean(), { minLength: 1, maxLength: 7 }),
  start: fc.nat(200),
  /** Where calls and texts begin. */
  parts: fc.array(fc.tuple(fc.nat(200), fc.boolean()), { maxLength: 8 }),
});

type Chaos = typeof chaos extends fc.Arbitrary<infer T> ? T : never;

/** At most one at each place of the text. */
const marksAt = (text: string, parts: Chaos['parts']): Mark[] =>
  [...new Map(parts.map(([place, isCall]) => [place % text.length, isCall]))]
    .map(([at, isCall]): Mark => (isCall ? call(at) : { kind: 'text', at }))
    .sort((a, b) => a.at - b.at);

async function writesExactly({ text, cuts, events, answers, reads, start, parts }: Chaos): Promise<void> {
  const offset = start % (text.length + 1);
  const marks = marksAt(text, parts);
  const { reader, asked, stream } = open({ from: { callId: 'call', offset } });
  const mayRead = cycle(reads);
  const isAnswered = cycle(answers);
  reader.mayRead = mayRead;
  const deltas = cut(text, cuts).map((each) => marked(each, marks));
  for (const event of events) {
    if (event === 'drain') await reader.drain();
    else stream.receive(event === 'report' ? delta(text.length, '') : pick(deltas, event));
    for (const place of asked.splice(0).filter(isAnswered))
      stream.receive(marked(delta(place, text.slice(place)), marks));
    vi.advanceTimersByTime(300);
    expect(text.slice(offset).startsWith(reader.text)).toBe(true);
  }
  // The end alone goes on with a piece to a reader who is full.
  expect(reader.overruns).toBe(0);
  const finished = stream.finish({ ...completion(text, 'call'), marks });
  reader.mayRead = () => true;
  await reader.drain();
  await finished;
  stream.close();
  expect([stream.hasFailed, reader.text]).toEqual([false, text.slice(offset)]);
  const ends = reader.pieces.map((_, n) => offset + reader.pieces.slice(0, n + 1).join('').length);
  expect(reader.positions).toEqual(ends.map((end) => ({ callId: 'call', offset: end })));
  // Each at its place, once: what the reader puts together is the reply, arguments byte for byte.
  const lacking = marks.filter(({ at }) => at >= offset);
  expect(reader.marks).toEqual(lacking.map((mark) => [mark, mark.at - offset]));
  expect(ownTimers()).toBe(0);
}

function cycle<T>(values: readonly T[]): () => T {
  let n = 0;
  return () => pick(values, n++);
}

const pick = <T>(values: readonly T[], n: number): T => values[n % values.length] as T;

describe('ReplyStream', () => {
  it('has deltas lost, doubled, late, sent again or refused → its reader gets exactly the text', async () => {
    await fc.assert(fc.asyncProperty(chaos, writesExactly), { numRuns: 200 });
  });
});

type Step = (opened: ReturnType<typeof open>) => unknown;
const d =
  (at: number, text: string, callId?: string): Step =>
  ({ stream }) =>
    stream.receive(delta(at, text, callId));
const ms =
  (time: number): Step =>
  () =>
    vi.advanceTimersByTime(time);
const ask: Step = ({ stream }) => stream.askFirst();
const close: Step = ({ stream }) => stream.close();
const leave: Step = ({ reader }) => reader.leave();
const drain: Step = ({ reader }) => reader.drain();
const reads =
  (mayRead: boolean): Step =>
  ({ reader }) => {
    reader.mayRead = () => mayRead;
  };
const askFor = (seconds: number): Step[] => Array.from({ length: seconds }, () => [ask, ms(1000)]).flat();

const interrupted = { code: 'internal', retryable: true };
const refused = { code: 'invalid_request' };

interface End {
  /** The text that the reader has got. */
  text?: string;
  /** The places from which the worker was asked to send. */
  asked?: number[];
  /** The failure that is reported, once; absent means none. */
  failure?: typeof interrupted | typeof refused;
}

async function comesTo(opened: ReturnType<typeof open>, steps: readonly Step[], end: End): Promise<void> {
  for (const step of steps) await step(opened);
  const { reader, asked, stream, failures } = opened;
  const { failure, ...expected } = end;
  expect({ text: reader.text, asked }).toMatchObject(expected);
  expect(failures).toMatchObject(failure ? [failure] : []);
  expect([stream.hasFailed, stream.isFinished]).toEqual([failure !== undefined, false]);
  // An answer of its own is for a place that cannot be; for all else the reader has a part of a text.
  if (failure) expect(reader.hasBegun).toBe(failure === interrupted);
  else stream.close();
  expect(ownTimers()).toBe(0);
}

describe('a stream that is sent here from its beginning', () => {
  const lost = [d(0, 'ab'), d(5, 'fg'), d(7, 'h')];
  const silent = [ms(60_000), d(0, 'ab'), ms(4999), d(2, 'c'), ms(4999)];
  const slow = [reads(false), d(0, 'ab'), d(2, 'cd'), d(9, 'x'), ms(10_000)];
  const begunAnew = [d(3, 'lo', 'second'), d(3, 'lo', 'first'), d(3, 'lo', 'second')];
  // The provider is silent; the worker is there.
  const quiet = [d(0, 'Hel'), ms(29_000), d(3, ''), ms(29_000)];

  it.each<[string, Step[], End]>([
    ['deltas come in order → nothing is asked for', [d(0, 'ab'), d(2, 'c')], { text: 'abc', asked: [] }],
    ['its job runs → nothing is asked for', [ask], { asked: [] }],
    ['a delta is lost → it is asked for once', lost, { text: 'ab', asked: [2] }],
    ['it is lost for a second → it is asked for again', [...lost, ms(1000), d(8, 'i')], { asked: [2, 2] }],
    [
      'it comes, and another is lost → that is asked for at once',
      [...lost, d(2, 'cdefgh'), d(20, 'z')],
      { text: 'abcdefgh', asked: [2, 8] },
    ],
    ['it is silent for less than five seconds → nothing is asked for', silent, { asked: [] }],
    ['it is silent for five seconds → its place is asked for', [...silent, ms(1)], { asked: [3] }],
    ['it is over → nothing is asked for', [d(0, 'ab'), close, ms(60_000), ask], { asked: [] }],
    ['its reader is slow → it takes nothing', slow, { text: 'ab', asked: [] }],
    ['its reader is slow no more → the rest is asked for', [...slow, drain], { asked: [2] }],
    ['its slow reader has left → it takes nothing', [...slow, leave, d(2, 'cd')], { text: 'ab', asked: [] }],
    ['it is over, and its reader reads on → nothing', [...slow, close, drain], { text: 'ab', asked: [] }],
    [
      'another call begins later → it never continues what was written',
      [d(0, 'Hel', 'first'), ...begunAnew],
      { text: 'Hel', asked: [], failure: interrupted },
    ],
    ['a worker is there, and silent → it goes on', quiet, { text: 'Hel' }],
    ['no worker has answered for half a minute → it is over', [...quiet, ms(6000)], { failure: interrupted }],
    [
      'its reader was slow for minutes → no worker is missed',
      [reads(false), d(0, 'Hel'), ms(120_000), reads(true), drain, ms(29_000)],
      { text: 'Hel' },
    ],
    ['a report of an earlier place is late → it goes on', [d(0, 'ab'), d(1, '')], { text: 'ab' }],
  ])('%s', (_, steps, end) => comesTo(open(), steps, end));
});

describe('a stream that is sent elsewhere', () => {
  it.each<[string, Step[], End]>([
    ['no worker runs its job yet → nothing is asked for', [ms(60_000)], { asked: [] }],
    ['it is over → nothing is asked for', [close, ask], { asked: [] }],
    ['a worker runs its job → it is asked, once a second at most', [ask, ask, ms(999), ask], { asked: [4] }],
    ['the worker says nothing for a second → it is asked again', [ask, ms(1000), ask], { asked: [4, 4] }],
    ['the worker has been heard → it is not asked again', [ask, d(4, ''), ms(4000), ask], { asked: [4] }],
    ['no worker answers for half a minute → it goes on', askFor(30), { text: '' }],
    ['no worker answers for longer → it is over', [...askFor(30), ask], { failure: interrupted }],
    ['its job has begun anew → it is over', [d(0, '', 'second')], { failure: interrupted }],
    ['the text ends before its place → it is refused', [d(3, '')], { failure: refused }],
  ])('%s', (_, steps, end) => {
    return comesTo(open({ from: { callId: 'call', offset: 4 }, isJoined: true }), steps, end);
  });

  it('no worker answers, and nothing was shown → it is asked for on', () => {
    const asked = Array<number>(120).fill(0);
    return comesTo(open({ isJoined: true }), askFor(120), { asked });
  });
});

describe('a reply with calls', () => {
  const text = 'Hi{"a":1}{}Bye';
  const marks: Mark[] = [call(2), call(9), { kind: 'text', at: 11 }];
  const told = marks.map((mark) => [mark, mark.at]);

  it('comes in one delta → it is written up to each mark, and says what it was asked without', () => {
    const { reader, asked, stream } = open();
    stream.receive({ ...marked(delta(0, text), marks), provider: 'openai', model: 'm', ignored: ['seed'] });
    expect(reader.pieces).toEqual(['Hi', '{"a":1}', '{}', 'Bye']);
    expect([reader.marks, asked]).toEqual([told, []]);
    expect(reader.source).toEqual({ writer: { provider: 'openai', model: 'm' }, ignored: ['seed'] });
    stream.close();
  });

  it('goes to a reader that knows no marks → it is one text', async () => {
    const reader = new Reader();
    const write: DeltaSink['write'] = (piece, at) => reader.write(piece, at);
    await new ReplyStream({ sink: { begin: () => {}, write, drained: async () => {} } }).finish({
      ...completion(text),
      marks,
    });
    expect(reader.text).toBe(text);
  });
});

describe('the whole text', () => {
  it('is there while its reader is slow → it comes in pieces, as fast as the reader reads', async () => {
    const text = '🦉'.repeat(20_000);
    const { reader, asked, stream } = open();
    reader.mayRead = () => false;
    stream.receive(delta(0, text.slice(0, 4)));
    const finished = stream.finish(completion(text, 'call'));
    while (reader.text.length < text.length) {
      const before = reader.text.length;
      stream.receive(delta(before, text.slice(before)));
      expect(reader.text.length).toBe(before);
      await reader.drain();
    }
    await reader.drain();
    await finished;
    expect(reader.text === text).toBe(true);
    expect(reader.pieces.every((piece) => piece.isWellFormed() && piece.length <= 16_384)).toBe(true);
    expect(asked).toEqual([]);
  });

  const second = [d(0, '', 'first'), d(3, 'lost', 'first'), d(0, 'Hi', 'second')];
  it.each<[string, Step[], Completion, string]>([
    ['all was written → nothing more', [d(0, 'Hello')], completion('Hello', 'call'), 'Hello'],
    ['it ends with half a surrogate pair → so does what is read', [], completion('a\ud83e'), 'a\ud83e'],
    ['nothing of a first call was written → the second is read', second, completion('Hi!', 'second'), 'Hi!'],
  ])('%s', async (_, steps, whole, text) => {
    const opened = open();
    for (const step of steps) await step(opened);
    await opened.stream.finish(whole);
    expect([opened.reader.text, opened.stream.isFinished]).toEqual([text, true]);
  });

  it.each([
    ['is of another call', 3, 'second', interrupted],
    ['is of a call that was not streamed', 3, undefined, interrupted],
    ['ends before the place of its reader', 9, 'first', refused],
  ])('%s → it is not continued', async (_, offset, callId, failure) => {
    const { reader, stream } = open({ from: { callId: 'first', offset } });
    await expect(stream.finish(completion('Hello', callId))).rejects.toMatchObject(failure);
    expect([reader.text, reader.hasBegun]).toEqual(['', failure === interrupted]);
  });

  it('was not streamed → it has positions of its own', async () => {
    const reader = new Reader();
    await new ReplyStream({ sink: reader }).finish(completion('Hello'));
    expect(reader.positions).toEqual([{ callId: '0', offset: 5 }]);
    const again = new Reader();
    await new ReplyStream({ sink: again, from: { callId: '0', offset: 2 } }).finish(completion('Hello'));
    expect(again.text).toBe('llo');
  });

  it('is written as the credentials of its reader end → nobody gets the rest', async () => {
    const reader = new Reader();
    reader.mayRead = () => false;
    const credentials = new AbortController();
    const stream = new ReplyStream({ sink: reader, signal: credentials.signal });
    const finished = stream.finish({ text: 'x'.repeat(100_000), model: 'm' });
    const refused = expect(finished).rejects.toMatchObject({ code: 'unauthorized' });
    credentials.abort(new Failure('unauthorized'));
    await reader.drain();
    reader.mayRead = () => true;
    await reader.drain();
    await refused;
    expect(reader.pieces).toHaveLength(1);
  });
});
