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
import type { Delta } from '../../../shared/protocol/deltas.js';
import { type Mark, piecesOf } from '../../../shared/protocol/parts.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
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
  expect(reader.positions).toEqual(positionsOf(reader.pieces, offset));
  // Each at its place, once: what the reader puts together is the reply, arguments byte for byte.
  const lacking = marks.filter(({ at }) => at >= offset);
  expect(reader.marks).toEqual(lacking.map((mark) => [mark, mark.at - offset]));
  if (offset === 0) expect(piecesAsRead(reader)).toEqual(piecesOf({ text, marks }));
  expect(vi.getTimerCount()).toBe(0);
}

function cycle<T>(values: readonly T[]): () => T {
  let n = 0;
  return () => pick(values, n++);
}

/** The parts of a reply, as a client sees them that has the marks between the pieces. */
function piecesAsRead({ text, marks }: Reader): ReturnType<typeof piecesOf> {
  const pieces = marks.map(([mark, at], n) => ({ mark, piece: text.slice(at, marks[n + 1]?.[1]) }));
  const head = text.slice(0, marks[0]?.[1]);
  return [
    ...(head === '' ? [] : [{ kind: 'text' as const, text: head }]),
    ...pieces.map(({ mark, piece }) =>
      mark.kind === 'call' ? { ...mark, arguments: piece } : { kind: mark.kind, text: piece },
    ),
  ];
}

const pick = <T>(values: readonly T[], n: number): T => values[n % values.length] as T;

/** The places behind each of the pieces. */
function positionsOf(pieces: readonly string[], offset: number): TextPosition[] {
  let end = offset;
  return pieces.map((piece) => {
    end += piece.length;
    return { callId: 'call', offset: end };
  });
}

describe('ReplyStream', () => {
  it('writes exactly the text, whatever is lost, doubled, late, sent again or refused', async () => {
    await fc.assert(fc.asyncProperty(chaos, writesExactly), { numRuns: 200 });
  });

  it('writes deltas that come in order as they come, and asks for nothing', async () => {
    const { reader, asked, stream } = open();
    for (const each of cut('A reply in pieces', [2, 6, 7])) stream.receive(each);
    expect(reader.pieces).toEqual(['A r', 'eply', ' ', 'in pieces']);
    await stream.finish(completion('A reply in pieces', 'call'));
    expect([reader.pieces.length, asked, stream.isFinished]).toEqual([4, [], true]);
  });

  it('asks once for what was lost, and again a second later', () => {
    const { reader, asked, stream } = open();
    stream.receive(delta(0, 'ab'));
    stream.receive(delta(5, 'fg'));
    stream.receive(delta(7, 'h'));
    expect(asked).toEqual([2]);
    vi.advanceTimersByTime(1000);
    stream.receive(delta(8, 'i'));
    expect(asked).toEqual([2, 2]);
    stream.receive(delta(2, 'cdefghi'));
    stream.receive(delta(20, 'z'));
    expect([asked, reader.text]).toEqual([[2, 2, 9], 'abcdefghi']);
  });

  it('asks after five seconds of silence how far the text has got', () => {
    const { asked, stream } = open();
    vi.advanceTimersByTime(60_000);
    expect(asked).toEqual([]);
    stream.receive(delta(0, 'ab'));
    vi.advanceTimersByTime(4999);
    stream.receive(delta(2, 'c'));
    vi.advanceTimersByTime(4999);
    expect(asked).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(asked).toEqual([3]);
    stream.close();
    vi.advanceTimersByTime(60_000);
    expect([asked, vi.getTimerCount()]).toEqual([[3], 0]);
  });

  it('asks for nothing of a text that is sent elsewhere until a worker runs its job', () => {
    const { asked, stream } = open({ isJoined: true, from: { callId: 'call', offset: 4 } });
    vi.advanceTimersByTime(60_000);
    expect([asked, vi.getTimerCount()]).toEqual([[], 0]);
    stream.close();
    stream.askFirst();
    expect(asked).toEqual([]);
  });

  it('asks for such a text at once, and then once a second at most until it hears something', () => {
    const { asked, stream } = open({ isJoined: true, from: { callId: 'call', offset: 4 } });
    stream.askFirst();
    stream.askFirst();
    vi.advanceTimersByTime(999);
    stream.askFirst();
    expect(asked).toEqual([4]);
    vi.advanceTimersByTime(1);
    stream.askFirst();
    expect(asked).toEqual([4, 4]);
    stream.receive(delta(4, ''));
    vi.advanceTimersByTime(4000);
    stream.askFirst();
    expect(asked).toHaveLength(2);
    stream.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('asks for nothing of a text that is sent here from its beginning, although its job runs', () => {
    const { asked, stream } = open();
    stream.askFirst();
    expect(asked).toEqual([]);
  });

  it('takes nothing for a slow reader, and asks for it once there is room', async () => {
    const { reader, asked, stream } = open();
    reader.mayRead = () => false;
    stream.receive(delta(0, 'ab'));
    stream.receive(delta(2, 'cd'));
    stream.receive(delta(9, 'x'));
    vi.advanceTimersByTime(10_000);
    expect([reader.text, asked]).toEqual(['ab', []]);
    await reader.drain();
    expect(asked).toEqual([2]);
    stream.receive(delta(2, 'cdefghijx'));
    expect(reader.text).toBe('abcdefghijx');
  });

  it.each<[string, (opened: ReturnType<typeof open>) => Promise<void>]>([
    ['its reader has left', ({ reader }) => reader.leave()],
    [
      'it is over, although the reader goes on',
      ({ reader, stream }) => {
        stream.close();
        return reader.drain();
      },
    ],
  ])('takes nothing and asks for nothing once %s', async (_, end) => {
    const opened = open();
    const { reader, asked, stream } = opened;
    reader.mayRead = () => false;
    stream.receive(delta(0, 'ab'));
    await end(opened);
    stream.receive(delta(2, 'cd'));
    expect([reader.text, asked]).toEqual(['ab', []]);
  });
});

describe('a reply with calls', () => {
  const text = 'Hi{"a":1}{}Bye';
  const marks: Mark[] = [call(2), call(9), { kind: 'text', at: 11 }];
  const told = marks.map((mark) => [mark, mark.at]);

  it('is written up to each mark, also when one delta has it all, and says what it was asked without', () => {
    const { reader, asked, stream } = open();
    stream.receive({ ...marked(delta(0, text), marks), provider: 'openai', model: 'm', ignored: ['seed'] });
    expect(reader.pieces).toEqual(['Hi', '{"a":1}', '{}', 'Bye']);
    expect([reader.marks, asked]).toEqual([told, []]);
    expect(reader.source).toEqual({ writer: { provider: 'openai', model: 'm' }, ignored: ['seed'] });
    stream.close();
  });

  it.each([
    ['inside an argument', 5, told.slice(1)],
    ['at a mark', 9, told.slice(1)],
    ['at the end', 14, []],
  ])('is read on from a place %s', async (_, offset, rest) => {
    const from = { callId: 'call', offset };
    const { reader, stream } = open({ from, isJoined: true });
    stream.receive(marked(delta(offset, text.slice(offset, offset + 3)), marks));
    await stream.finish({ ...completion(text, 'call'), marks });
    expect([reader.text, reader.marks.map(([mark]) => mark)]).toEqual([
      text.slice(offset),
      rest.map(([mark]) => mark),
    ]);
    const again = new Reader();
    await ReplyStream.replay(
      { sink: again, from },
      { ...completion(text, 'call'), marks, ignored: ['seed'] },
    );
    expect([again.text, again.marks]).toEqual([reader.text, reader.marks]);
  });

  it('goes to a reader that knows no marks as one text', async () => {
    const pieces: string[] = [];
    const sink: DeltaSink = {
      begin: () => {},
      write: (piece) => pieces.push(piece) > 0,
      drained: async () => {},
    };
    await ReplyStream.replay({ sink, from: undefined }, { ...completion(text), marks });
    expect(pieces.join('')).toBe(text);
  });
});

describe('the whole text', () => {
  it('fills what is missing in pieces, as fast as the reader reads, beside deltas that are late', async () => {
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

  it('is written to its end also when that is half a surrogate pair', async () => {
    const { reader, stream } = open();
    await stream.finish(completion('a\ud83e'));
    expect(reader.text).toBe('a\ud83e');
  });

  it('of a reply that nobody has read as it was written has positions of its own', async () => {
    const reader = new Reader();
    await ReplyStream.replay({ sink: reader, from: undefined }, completion('Hello'));
    expect(reader.positions).toEqual([{ callId: '0', offset: 5 }]);
    const again = new Reader();
    await ReplyStream.replay({ sink: again, from: { callId: '0', offset: 2 } }, completion('Hello'));
    expect(again.text).toBe('llo');
  });

  it('rejects with what the reader ended with', async () => {
    const { reader, stream } = open();
    reader.mayRead = () => false;
    const finished = expect(stream.finish(completion('Hello', 'call'))).rejects.toThrow('left');
    await reader.leave();
    await finished;
  });
});

describe('the text of another call', () => {
  const interrupted = { code: 'internal', retryable: true };

  it('is what is read when nothing was written of the first', async () => {
    const { reader, stream } = open();
    stream.receive(delta(0, '', 'first'));
    stream.receive(delta(3, 'lost', 'first'));
    stream.receive(delta(0, 'Hello', 'second'));
    await stream.finish(completion('Hello!', 'second'));
    expect(reader.text).toBe('Hello!');
  });

  it('never continues what was written', () => {
    const { reader, stream, failures } = open();
    stream.receive(delta(0, 'Hel', 'first'));
    stream.receive(delta(3, 'lo', 'second'));
    stream.receive(delta(3, 'lo', 'first'));
    stream.receive(delta(3, 'lo', 'second'));
    expect(failures).toMatchObject([interrupted]);
    expect([reader.text, stream.hasFailed, reader.hasBegun]).toEqual(['Hel', true, true]);
    expect(stream.isFinished).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is taken for granted when no worker has answered for half a minute', () => {
    const { reader, stream, failures } = open();
    stream.receive(delta(0, 'Hel'));
    vi.advanceTimersByTime(29_000);
    // The provider is silent; the worker is there.
    stream.receive(delta(3, ''));
    vi.advanceTimersByTime(29_000);
    expect(stream.hasFailed).toBe(false);
    vi.advanceTimersByTime(6_000);
    expect(failures).toMatchObject([interrupted]);
    expect([reader.text, vi.getTimerCount()]).toEqual(['Hel', 0]);
  });

  it('is taken for granted as well when no worker answers a reader who comes back', () => {
    const { stream, failures } = open({ from: { callId: 'call', offset: 3 }, isJoined: true });
    for (let second = 0; second < 30; second += 1) {
      stream.askFirst();
      vi.advanceTimersByTime(1000);
    }
    expect(failures).toEqual([]);
    stream.askFirst();
    expect(failures).toMatchObject([interrupted]);
  });

  it('is not taken for granted while nothing was shown, or its reader is slow', async () => {
    const waiting = open({ isJoined: true });
    const slow = open();
    slow.reader.mayRead = () => false;
    slow.stream.receive(delta(0, 'Hel'));
    for (let second = 0; second < 120; second += 1) {
      waiting.stream.askFirst();
      vi.advanceTimersByTime(1000);
    }
    expect(waiting.asked).toHaveLength(120);
    slow.reader.mayRead = () => true;
    await slow.reader.drain();
    vi.advanceTimersByTime(29_000);
    expect([waiting.stream.hasFailed, slow.stream.hasFailed]).toEqual([false, false]);
    waiting.stream.close();
    slow.stream.close();
  });

  it('is noticed in the report that a job has begun anew', () => {
    const { stream, failures } = open({ from: { callId: 'first', offset: 3 }, isJoined: true });
    stream.receive(delta(0, '', 'second'));
    expect(failures).toMatchObject([interrupted]);
  });

  it.each([undefined, 'second'])('is noticed in the end, from %s', async (callId) => {
    const { reader, stream } = open({ from: { callId: 'first', offset: 3 } });
    await expect(stream.finish(completion('Hello', callId))).rejects.toMatchObject(interrupted);
    expect([reader.text, reader.hasBegun]).toEqual(['', true]);
  });
});

describe('a place beyond the text', () => {
  const refused = { code: 'invalid_request' };
  const from = { callId: 'call', offset: 9 };

  it('is refused when the worker says where the text ends, before anything is sent', () => {
    const { reader, stream, failures } = open({ from, isJoined: true });
    stream.receive(delta(8, ''));
    expect(failures).toMatchObject([refused]);
    expect(reader.hasBegun).toBe(false);
  });

  it('is refused when the text has ended before it', async () => {
    const { reader, stream } = open({ from });
    await expect(stream.finish(completion('12345678', 'call'))).rejects.toMatchObject(refused);
    expect(reader.hasBegun).toBe(false);
  });

  it('is not what a late report says to somebody who has read on', () => {
    const { stream } = open();
    stream.receive(delta(0, 'ab'));
    stream.receive(delta(1, ''));
    expect(stream.hasFailed).toBe(false);
  });
});

it('gives the rest of a whole reply to nobody whose credentials have ended meanwhile', async () => {
  const reader = new Reader();
  reader.mayRead = () => false;
  const credentials = new AbortController();
  const options = { sink: reader, from: undefined, signal: credentials.signal };
  const replaying = ReplyStream.replay(options, { text: 'x'.repeat(100_000), model: 'm' });
  const refused = expect(replaying).rejects.toMatchObject({ code: 'unauthorized' });
  credentials.abort(new Failure('unauthorized'));
  await reader.drain();
  reader.mayRead = () => true;
  await reader.drain();
  await refused;
  expect(reader.pieces).toHaveLength(1);
});
