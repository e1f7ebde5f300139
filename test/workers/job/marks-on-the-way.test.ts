import fc from 'fast-check';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type DeltaSink, ReplyStream } from '../../../api/chat/reply-stream.js';
import { type Delta, deltasSchema } from '../../../shared/protocol/deltas.js';
import { decodeOutcome, encodeOutcome } from '../../../shared/protocol/outcome.js';
import { type Mark, piecesOf, type ReplyPiece } from '../../../shared/protocol/parts.js';
import { DeltaPublisher } from '../../../workers/job/delta-publisher.js';
import { toOutcome } from '../../../workers/job/outcomes.js';
import { RunningJobs } from '../../../workers/job/running-jobs.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { createRecordingRelay } from '../../support/recording-relay.js';
import { takeJob } from '../../support/running-jobs.js';

// A reply with calls on its way from the worker's tape to its reader, with messages that are lost.

const { log } = createRecordingLog();
beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'],
  });
});
afterEach(() => {
  vi.useRealTimers();
});

const turn = async () => {
  for (let n = 0; n < 3; n += 1) await new Promise((resolve) => setImmediate(resolve));
};

const piece = fc.record({
  kind: fc.constantFrom('text' as const, 'call' as const),
  /** In the pieces in which the provider streams it. */
  text: fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 9 }), { minLength: 1, maxLength: 4 }),
  signatureLength: fc.constantFrom(0, 10, 40_000),
});

const way = fc.record({
  parts: fc.array(piece, { minLength: 1, maxLength: 6 }),
  /** For each message whether it arrives, and whether a window passes before the next piece. */
  arrives: fc.array(fc.boolean(), { minLength: 1, maxLength: 7 }),
  waits: fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }),
  /** Whether the reader takes more after a piece. */
  reads: fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }),
  /** How much of the tape is written before the reply is whole. */
  streamed: fc.nat(30),
});

type Way = typeof way extends fc.Arbitrary<infer T> ? T : never;

/** The tape, and each piece of it as an adapter hands it out. */
function write(parts: Way['parts']) {
  const marks: Mark[] = [];
  const pieces: [string, Mark?][] = [];
  let tape = '';
  for (const [place, { kind, text, signatureLength }] of parts.entries()) {
    const signature = signatureLength > 0 ? { signature: 's'.repeat(signatureLength) } : {};
    const call: Mark = { kind: 'call', at: tape.length, id: `${place}`, name: 'f', ...signature };
    const isHead = kind === 'text' && marks.length === 0;
    const mark: Mark = kind === 'call' ? call : { kind, at: tape.length };
    if (!isHead) marks.push(mark);
    for (const [n, each] of text.entries()) {
      pieces.push(n === 0 && !isHead ? [each, mark] : [each]);
      tape += each;
    }
  }
  return { tape, marks, pieces };
}

/** Puts the reply together again. */
class Client implements DeltaSink {
  readonly pieces: ReplyPiece[] = [];
  mayRead = () => true;
  #drained = Promise.withResolvers<void>();

  begin(): void {}

  mark(mark: Mark): void {
    this.pieces.push(mark.kind === 'call' ? { ...mark, arguments: '' } : { kind: 'text', text: '' });
  }

  write(text: string): boolean {
    const last = this.pieces.pop() ?? { kind: 'text', text: '' };
    this.pieces.push(
      last.kind === 'call'
        ? { ...last, arguments: last.arguments + text }
        : { ...last, text: last.text + text },
    );
    return this.mayRead();
  }

  drained(): Promise<void> {
    return this.mayRead() ? Promise.resolve() : this.#drained.promise;
  }

  drain(): void {
    this.#drained.resolve();
    this.#drained = Promise.withResolvers();
  }
}

const cycle = <T>(values: readonly T[]) => {
  let n = 0;
  return () => values[n++ % values.length] as T;
};

async function arrivesWhole({ parts, arrives, waits, reads, streamed }: Way): Promise<void> {
  const { tape, marks, pieces } = write(parts);
  const jobs = new RunningJobs();
  const relay = createRecordingRelay();
  const publisher = new DeltaPublisher({ jobs, relay, windowMs: 20, log });
  const job = takeJob();
  jobs.open(job);
  const chat = { replyTo: 'x', turns: [], parameters: { tools: [{ name: 'f' }] } };
  const stream = publisher.open(job, chat);
  const client = new Client();
  client.mayRead = cycle(reads);
  const reader = new ReplyStream({
    ...{ sink: client, isJoined: false, onFailure: (failure) => expect.unreachable(failure.code) },
    requestResend: (from) => publisher.onResend({ v: 1, jobId: 'job', api: 'x', from, max: 12 }),
  });
  const isTaken = cycle(arrives);
  const receive = (): void => {
    for (const { message } of relay.published.splice(0)) {
      const { deltas }: { deltas: Delta[] } = deltasSchema.parse(JSON.parse(JSON.stringify(message)));
      if (isTaken()) for (const delta of deltas) reader.receive(delta);
    }
  };
  const waiting = cycle(waits);
  for (const [text, mark] of pieces.slice(0, streamed)) {
    stream.append(text, mark);
    if (!waiting()) continue;
    vi.advanceTimersByTime(300);
    await turn();
    receive();
    client.drain();
    await turn();
  }
  const reply = { text: tape, marks, reason: 'stop', model: 'm' } as const;
  const times = { queueMs: 0, providerMs: 0, callId: stream.callId };
  const outcome = decodeOutcome(encodeOutcome(toOutcome(reply, times)));
  stream[Symbol.dispose]();
  client.mayRead = () => true;
  client.drain();
  if (!('text' in outcome)) return expect.unreachable(outcome.kind);
  await reader.finish(outcome);
  expect(client.pieces).toEqual(piecesOf({ text: tape, marks }));
  const again = new Client();
  await new ReplyStream({ sink: again, from: undefined }).finish(outcome);
  expect(again.pieces).toEqual(client.pieces);
}

it('arrives byte for byte, call by call, whatever is lost, late or sent again, and once more in a replay', async () => {
  await fc.assert(fc.asyncProperty(way, arrivesWhole), { numRuns: 100 });
});
