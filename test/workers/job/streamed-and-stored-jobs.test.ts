import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Turn } from '../../../shared/conversation.js';
import { Failure } from '../../../shared/failures.js';
import type { ChatJob } from '../../../shared/protocol/messages.js';
import { decodeOutcome, encodeOutcome } from '../../../shared/protocol/outcome.js';
import type { Mark } from '../../../shared/protocol/parts.js';
import { decodeStoredResult } from '../../../shared/protocol/stored-chat.js';
import { Cancelled, LockLost, NotBegun } from '../../../workers/gate/ends.js';
import type { CallChainDeps } from '../../../workers/job/call-chain.js';
import type { ChatJobDeps } from '../../../workers/job/chat-job.js';
import { DeltaPublisher } from '../../../workers/job/delta-publisher.js';
import type { DeltaStream } from '../../../workers/job/delta-stream.js';
import type { JobListener, RunningJob } from '../../../workers/job/running-job.js';
import { RunningJobs } from '../../../workers/job/running-jobs.js';
import { StoredResults } from '../../../workers/job/stored-results.js';
import { classifyError, ProviderCallError } from '../../../workers/providers/error-classification.js';
import type { Provider, ProviderReply } from '../../../workers/providers/provider.js';
import { chatJobOf, runJob } from '../../support/chat-jobs.js';
import { openGate } from '../../support/gate.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { createRecordingRelay } from '../../support/recording-relay.js';
import { takeJob } from '../../support/running-jobs.js';

type Run = Provider['run'];

const broken = new Failure('provider_error', { retryable: true });
const unreachable = new Failure('provider_error', {
  retryable: true,
  cause: new ProviderCallError('Error', undefined, 'EHOSTUNREACH'),
});
const { log } = createRecordingLog();
const reply: ProviderReply = { text: 'Hello', reason: 'stop', model: 'm' };

/** A clock that stands still, so that a slow machine is never too late. */
const now = Date.now();

let open: ReturnType<typeof openGate>;
let deltas: DeltaStream | undefined;
let publisher: DeltaPublisher;
let calls: number;
/** The outcomes of stored chats. */
let records: Map<string, string>;

beforeEach(() => {
  open = openGate({ resetMs: 100 });
  calls = 0;
  records = new Map();
  publisher = new DeltaPublisher({
    jobs: new RunningJobs(),
    relay: createRecordingRelay(),
    windowMs: 20,
    log,
  });
});
afterEach(() => {
  deltas?.[Symbol.dispose]();
  open.close();
});

interface RunOptions {
  job?: Partial<ChatJob>;
  deps?: Partial<ChatJobDeps> & Pick<CallChainDeps, 'withImages'>;
  now?: () => number;
  stop?: AbortController;
  listeners?: readonly JobListener[];
}

/** Runs a job that was enqueued ten seconds ago; each call of the provider is the next of these, then the last. */
function run(steps: Run[], own: RunOptions = {}) {
  const job = chatJobOf({ model: 'm', replyTo: 'x', stream: true, deadline: now + 60_000, ...own.job });
  const provider: Provider = {
    id: 'openai',
    run: async (request, onDelta) => {
      const step = steps[Math.min(calls++, steps.length - 1)] as Run;
      return step(request, onDelta);
    },
    close: () => {},
  };
  const { stop = new AbortController() } = own;
  const running = takeJob({
    timestamp: now - 10_000,
    data: job,
    now: own.now ?? (() => now),
    stop: stop.signal,
    listeners: own.listeners ?? [],
  });
  if (job.stream) deltas = publisher.open(running, job);
  const storedResults = new StoredResults({
    records: {
      read: async (key) => records.get(key),
      create: async (key, { value }) => !records.has(key) && records.set(key, value).size > 0,
    },
    log,
  });
  return runJob(running, job, { provider, open, storedResults, ...own.deps });
}

const writes: Run = async (_, onDelta) => {
  for (const piece of ['Hel', 'lo']) onDelta?.(piece);
  return reply;
};
const fails =
  (error: Error): Run =>
  async () => {
    throw error;
  };
const failsInTheMiddle =
  (error: Failure): Run =>
  async (_, onDelta) => {
    onDelta?.('Hel');
    throw error;
  };
/** Does nothing until it is ended. */
const hangs: Run = ({ signal }) =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });

describe('the wait of a job', () => {
  it.each<[string, Run[], RunOptions['job'], begun: number[], outcome: object]>([
    ['a call and its retry', [fails(broken), writes], {}, [10_000], { kind: 'ok', queueMs: 10_000 }],
    ['no call', [writes], { deadline: now }, [], { code: 'timeout', queueMs: 10_000, providerMs: 0 }],
  ])('%s -> it ends where the first begins, once, if one does', async (_, steps, job, waits, outcome) => {
    const begun: number[] = [];
    const listeners = [{ begun: ({ timings }: RunningJob) => void begun.push(timings.queueMs) }];
    expect(await run(steps, { job: { ...job }, listeners })).toMatchObject(outcome);
    expect(begun).toEqual(waits);
  });
});

describe('the time of the first delta', () => {
  it('is in the outcome, counted from the first call on', async () => {
    let at = now;
    const step: (run: Run) => Run = (run) => (request, onDelta) => {
      at += 300;
      return run(request, onDelta);
    };
    const slowly: Run = async (_, onDelta) => {
      onDelta?.('Hel');
      at += 2000;
      onDelta?.('lo');
      return reply;
    };
    const outcome = await run([step(fails(broken)), step(slowly)], { now: () => at });
    expect(outcome).toMatchObject({ kind: 'ok', firstTokenMs: 600, providerMs: 2600 });
    expect(decodeOutcome(encodeOutcome(outcome))).toEqual(outcome);
  });

  it('is there as well when the stream breaks off, and not when it has not begun', async () => {
    expect(await run([failsInTheMiddle(broken)])).toMatchObject({ kind: 'failed', firstTokenMs: 0 });
    expect(await run([fails(broken)])).toHaveProperty('firstTokenMs', undefined);
  });
});

describe('runChatJob of a stream', () => {
  it('sends the pieces on, and names the call whose text it is', async () => {
    expect(await run([writes])).toMatchObject({ kind: 'ok', text: 'Hello', callId: deltas?.callId });
    expect(deltas?.text).toBe('Hello');
  });

  it('asks for one answer where no client reads it as it is written', async () => {
    const whole: Run = async (_, onDelta) => ({ ...reply, text: onDelta ? 'streamed' : 'whole' });
    const outcome = await run([whole], { job: { stream: false } });
    expect(outcome).toMatchObject({ text: 'whole' });
    expect(outcome).toMatchObject({ callId: undefined, firstTokenMs: undefined });
  });

  it('goes back to the queue when the provider cannot be reached, but not after the first delta', async () => {
    await expect(run([fails(unreachable)])).rejects.toBeInstanceOf(NotBegun);
    expect(await run([failsInTheMiddle(unreachable)])).toMatchObject({ code: 'provider_error' });
  });
});

describe('a reply with calls', () => {
  const tools = [{ name: 'f' }];
  const mark: Mark = { kind: 'call', at: 2, id: 'a', name: 'f' };
  const marked: Run = async (_, onDelta) => {
    onDelta?.('Hi');
    onDelta?.('{}', mark);
    return { ...reply, text: 'Hi{}', marks: [mark] };
  };

  it('has its marks in the deltas and in the outcome', async () => {
    const outcome = await run([marked], { job: { parameters: { tools } } });
    expect(outcome).toMatchObject({ kind: 'ok', text: 'Hi{}', marks: [mark] });
    expect(deltas).toMatchObject({ text: 'Hi{}', marks: [mark], options: { version: 2 } });
    expect(decodeOutcome(encodeOutcome(outcome))).toEqual(outcome);
  });

  it('has no field for them without any', async () => {
    const outcome = await run([async () => ({ ...reply, marks: [] })], { job: { stream: false } });
    expect(JSON.parse(encodeOutcome(outcome))).not.toHaveProperty('marks');
    expect(JSON.parse(encodeOutcome(outcome))).toMatchObject({ v: 1 });
  });
});

describe('a hint that the model refuses', () => {
  const refused = (text: string) => fails(classifyError(new Error(text), { status: 400, text }));
  const tuned = { parameters: { temperature: 0.5, seed: 1, stop: ['x'] } };
  it('shows nothing, and its repetition is made although the model is on trial', async () => {
    const steps = Array.from({ length: 5 }, () => fails(broken));
    for (let n = 0; n < 5; n += 1) await run(steps, { job: { attempt: 2 } });
    expect(open.gate.worstState).toBe('open');
    await vi.waitFor(() => expect(open.gate.worstState).toBe('half-open'), patience);
    calls = 0;
    expect(await run([refused('`seed` is not supported'), writes], { job: tuned })).toMatchObject({
      kind: 'ok',
    });
    expect([calls, open.gate.worstState]).toEqual([2, 'closed']);
  });
});

describe('a turn with images', () => {
  const stored = { type: 'image', mediaType: 'image/png', sha256: 'a'.repeat(64), bytes: 1 } as const;
  const linked = { type: 'image', url: 'https://x' } as const;

  it.each([
    ['is asked with their bytes when they are stored, as those of its user', stored, 1],
    ['is asked as it is when they are linked', linked, 0],
  ])('%s', async (_, image, loads) => {
    const loaded: unknown[] = [];
    const turns: Turn[] = [{ role: 'user', content: [image] }];
    const withImages = async (given: readonly Turn[], user?: string) => {
      loaded.push([given, user]);
      return [{ role: 'user' as const, content: [{ ...stored, data: 'AA==' }] }];
    };
    let seen: unknown;
    const step: Run = async (request) => {
      seen = request.turns;
      return reply;
    };
    await run([step], { job: { turns }, deps: { withImages } });
    expect(loaded).toEqual(Array.from({ length: loads }, () => [turns, 'me']));
    expect(seen).toEqual(loads ? [{ role: 'user', content: [{ ...stored, data: 'AA==' }] }] : turns);
  });
});

it('ends as its call does, and not as reading an image ended after that', async () => {
  const stored = { type: 'image', mediaType: 'image/png', sha256: 'a'.repeat(64), bytes: 1 } as const;
  const turns: Turn[] = [{ role: 'user', content: [stored] }];
  const stop = new AbortController();
  const withImages = async () => {
    stop.abort(new Failure('timeout'));
    throw new Failure('internal', { retryable: true });
  };
  const outcome = await run([writes], { job: { turns }, deps: { withImages }, stop });
  expect(outcome).toMatchObject({ code: 'timeout' });
});

describe('the time of a stream', () => {
  it.each([{ firstDeltaBy: now }, { deadline: now }])('is over before a call: %j', async (job) => {
    expect(await run([writes], { job })).toMatchObject({ code: 'timeout' });
    expect(calls).toBe(0);
  });

  it('is not over because a whole reply usually takes longer than what is left', async () => {
    const deps = { times: { meanMs: 60_000 } };
    expect(await run([writes], { job: { firstDeltaBy: now + 5000 }, deps })).toMatchObject({ kind: 'ok' });
  });
});

describe('runChatJob of a stored chat', () => {
  const stored = { keptUntil: now + 120_000, stream: false };
  const recorded = () => [...records.values()].map((text) => decodeStoredResult(text).outcome);
  /** Ends the job in the middle of its call. */
  const stopped = (reason: Error) => {
    const stop = new AbortController();
    const step: Run = (request) => {
      setImmediate(() => stop.abort(reason));
      return hangs(request);
    };
    return run([step], { job: stored, stop });
  };

  it('records the answer before the job ends; a worker that takes it over, however late, makes no call', async () => {
    const outcome = await run([writes], { job: stored });
    expect(outcome).toMatchObject({ kind: 'ok', text: 'Hello' });
    expect(recorded()).toEqual([outcome]);
    expect(await run([writes], { job: { ...stored, deadline: now - 1 } })).toEqual(outcome);
    expect(calls).toBe(1);
  });

  it.each<[string, object, () => ReturnType<typeof run>]>([
    ['a cancel', { kind: 'cancelled' }, () => stopped(new Cancelled())],
    ['a failure', { code: 'provider_error' }, () => run([fails(broken)], { job: stored })],
    ['a deadline', { code: 'timeout' }, () => run([writes], { job: { ...stored, deadline: now } })],
  ])('records %s', async (_, end, ended) => {
    const outcome = await ended();
    expect(outcome).toMatchObject(end);
    expect(recorded()).toEqual([outcome]);
  });

  it('records nothing of a job that was lost, nor of an unexpected error, which its pool worker records', async () => {
    const [lost, unexpected] = [new LockLost(), new TypeError('x')];
    await expect(stopped(lost)).rejects.toBe(lost);
    await expect(run([fails(unexpected)], { job: stored })).rejects.toBe(unexpected);
    expect(recorded()).toEqual([]);
  });
});
