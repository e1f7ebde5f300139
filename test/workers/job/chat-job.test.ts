import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ImagePart, Turn } from '../../../shared/conversation.js';
import { Failure } from '../../../shared/failures.js';
import type { ChatJob } from '../../../shared/protocol/messages.js';
import { decodeOutcome, encodeOutcome } from '../../../shared/protocol/outcome.js';
import type { Mark } from '../../../shared/protocol/parts.js';
import { decodeStoredResult } from '../../../shared/protocol/stored-chat.js';
import { Cancelled, LockLost, NotBegun } from '../../../workers/gate/gated-call.js';
import type { CallChainDeps } from '../../../workers/job/call-chain.js';
import type { ChatJobDeps } from '../../../workers/job/chat-job.js';
import { DeltaPublisher } from '../../../workers/job/delta-publisher.js';
import type { DeltaStream } from '../../../workers/job/delta-stream.js';
import type { RunningJob } from '../../../workers/job/running-job.js';
import { RunningJobs } from '../../../workers/job/running-jobs.js';
import { StoredResults } from '../../../workers/job/stored-results.js';
import { classifyError, ProviderCallError } from '../../../workers/providers/errors/error-classification.js';
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
const usage = { inputTokens: 1, outputTokens: 2 };
const reply: ProviderReply = { text: 'Hello', reason: 'stop', model: 'm', usage };

/** A clock that stands still, so that a slow machine is never too late. */
const now = Date.now();

let open: ReturnType<typeof openGate>;
let deltas: DeltaStream | undefined;
let calls: number;
/** The waits of the jobs that have begun. */
let begun: number[];
let failures: Failure[];
/** The outcomes of stored chats. */
let records: Map<string, string>;

beforeEach(() => {
  open = openGate({ resetMs: 100 });
  [calls, begun, failures, records] = [0, [], [], new Map()];
});
afterEach(() => {
  deltas?.[Symbol.dispose]();
  open.close();
});

interface RunOptions {
  job?: Partial<ChatJob>;
  deps?: Partial<ChatJobDeps> & Pick<CallChainDeps, 'withImages' | 'fill'>;
  waitedMs?: number;
  now?: () => number;
  stop?: AbortController;
}

/** Runs a job that was enqueued ten seconds ago; each call of the provider is the next of these, then the last. */
function run(steps: Run[], own: RunOptions = {}) {
  const { waitedMs = 10_000, stop } = own;
  const job = chatJobOf({ model: 'm', deadline: now + 60_000, ...own.job });
  const provider: Provider = {
    id: 'openai',
    run: async (request, onDelta) => {
      const step = steps[Math.min(calls++, steps.length - 1)] as Run;
      return step(request, onDelta);
    },
    close: () => {},
  };
  const running = takeJob({
    timestamp: now - waitedMs,
    data: job,
    now: own.now ?? (() => now),
    ...(stop && { stop: stop.signal }),
    listeners: [{ begun: ({ timings }: RunningJob) => void begun.push(timings.queueMs) }],
  });
  const relay = createRecordingRelay();
  const publisher = new DeltaPublisher({ jobs: new RunningJobs(), relay, windowMs: 20, log });
  deltas = job.stream ? publisher.open(running, job) : undefined;
  const storedResults = new StoredResults({
    records: {
      read: async (key) => records.get(key),
      create: async (key, { value }) => !records.has(key) && records.set(key, value).size > 0,
    },
    log,
    now: Date.now,
  });
  const onFailure = (failure: Failure) => void failures.push(failure);
  return runJob(running, job, { provider, open, storedResults, onFailure, ...own.deps });
}

const gives =
  (own: Partial<ProviderReply> = {}): Run =>
  async () => ({ ...reply, ...own });
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
const refuses = (status: number, text = 'no') => fails(classifyError(new Error(text), { status, text }));
/** Ends the job in the middle of its call. */
const runStopped = (reason: Error, job?: RunOptions['job']) => {
  const stop = new AbortController();
  const hangs: Run = ({ signal }) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
      setImmediate(() => stop.abort(reason));
    });
  return run([hangs], { stop, job: { ...job } });
};

describe('a job', () => {
  it('that is answered by a retry -> the text, and the times from the first call on', async () => {
    let at = now;
    const slow: Run = async () => {
      at += 300;
      throw broken;
    };
    const slowly: Run = async (_, onDelta) => {
      at += 300;
      onDelta?.('Hel');
      at += 2000;
      onDelta?.('lo');
      return reply;
    };
    const outcome = await run([slow, slowly], { now: () => at, job: { stream: true } });
    const { reason: _, ...answer } = reply;
    const times = { queueMs: 10_000, providerMs: 2600, firstTokenMs: 600 };
    expect(outcome).toEqual({ kind: 'ok', ...answer, ...times, callId: deltas?.callId });
    expect(decodeOutcome(encodeOutcome(outcome))).toEqual(outcome);
    expect([deltas?.text, begun, failures]).toEqual(['Hello', [10_000], []]);
  });

  const slow = { times: { meanMs: 8000 } };
  const cancelled = new AbortController();
  cancelled.abort(new Cancelled());
  it.each<[string, RunOptions, object]>([
    [
      'whose deadline has passed',
      { job: { deadline: now } },
      { code: 'timeout', queueMs: 10_000, providerMs: 0 },
    ],
    ['whose stream had to begin by now', { job: { stream: true, firstDeltaBy: now } }, { code: 'timeout' }],
    ['that was cancelled', { stop: cancelled }, { kind: 'cancelled' }],
    [
      'with less than half a usual call left',
      { job: { deadline: now + 3000 }, deps: slow },
      { code: 'overloaded', retryable: true, retryAfterMs: 8000, providerMs: 0 },
    ],
    [
      'for a model that callers may not name',
      { job: { model: 'a/b' } },
      { code: 'invalid_request', retryable: false },
    ],
  ])('%s -> no call', async (_, own, outcome) => {
    expect(await run([writes], own)).toMatchObject(outcome);
    expect([calls, begun]).toEqual([0, []]);
  });

  it.each<[string, RunOptions]>([
    ['that has hardly waited', { job: { deadline: now + 3000 }, deps: slow, waitedMs: 10 }],
    ['with half a usual call left', { job: { deadline: now + 5000 }, deps: slow }],
    ['whose stream has time to begin', { job: { stream: true, firstDeltaBy: now + 3000 }, deps: slow }],
  ])('%s -> a call, however long they usually take', async (_, own) => {
    expect(await run([writes], own)).toMatchObject({ kind: 'ok' });
  });

  const rejected = { kind: 'failed', code: 'provider_rejected', retryable: false };
  const blocked = { kind: 'blocked', usage, queueMs: 10_000, providerMs: 0 };
  it.each<[string, Run, number, object]>([
    ['a reply that reached its limit', gives({ reason: 'length' }), 1, { kind: 'truncated', text: 'Hello' }],
    ['a blocked one', gives({ reason: 'blocked' }), 1, blocked],
    ['refused credentials', refuses(401), 1, { ...rejected, credentialsRefused: true }],
    ['a refused request', refuses(400), 1, { ...rejected, credentialsRefused: undefined }],
    ['failures', fails(broken), 2, { kind: 'failed', code: 'provider_error', retryable: true }],
  ])('that meets %s -> ends as that, and says why it has no reply', async (_, step, count, outcome) => {
    const ended = await run([step], { job: { stream: true } });
    expect(ended).toMatchObject({ ...outcome, firstTokenMs: undefined });
    expect(calls).toBe(count);
    expect(failures).toMatchObject('code' in outcome ? [{ code: outcome.code }] : []);
  });

  it.each<[string, Error, object, number]>([
    ['is stopped', new Failure('provider_unavailable'), { code: 'provider_unavailable' }, 1],
    ['is cancelled', new Cancelled(), { kind: 'cancelled' }, 0],
    ['loses its lock', new LockLost(), new LockLost(), 0],
  ])('that %s in its call -> no other', async (_, reason, end, failed) => {
    expect(await runStopped(reason).catch((error) => error)).toMatchObject(end);
    expect([calls, failures.length, open.gate.worstState]).toEqual([1, failed, 'closed']);
  });

  it('that no client reads as it is written -> asks for one answer', async () => {
    const whole: Run = async (_, onDelta) => ({ ...reply, text: onDelta ? 'streamed' : 'whole' });
    const facts = { text: 'whole', callId: undefined, firstTokenMs: undefined };
    expect(await run([whole])).toMatchObject(facts);
  });

  it('that cannot reach its provider -> goes back to the queue, but not after the first delta', async () => {
    const stream = { job: { stream: true } };
    await expect(run([fails(unreachable)], stream)).rejects.toBeInstanceOf(NotBegun);
    const brokenOff = { code: 'provider_error', firstTokenMs: 0 };
    expect(await run([failsInTheMiddle(unreachable)], stream)).toMatchObject(brokenOff);
  });

  it('whose model thinks before it fails -> asked once more, and no reader saw the thought, unless it is for people', async () => {
    const source = { provider: 'openai', model: 'm' } as const;
    const thought: Mark = { kind: 'opaque', at: 0, length: 2, ...source, role: 'block' };
    const marks: Mark[] = [thought, { kind: 'text', at: 2 }];
    const breaksOff: Run = async (_, onDelta) => {
      onDelta?.('{}', thought);
      throw broken;
    };
    const answers: Run = async ({ reasoning }, onDelta) => {
      onDelta?.('{}', thought);
      expect([reasoning, deltas?.text]).toEqual(['opaque', '']);
      onDelta?.('Hi', marks[1]);
      return { ...reply, text: '{}Hi', marks };
    };
    const asked = { stream: true, reasoning: 'opaque' } as const;
    expect(await run([breaksOff, answers], { job: asked })).toMatchObject({
      kind: 'ok',
      text: '{}Hi',
      marks,
    });
    expect(deltas).toMatchObject({ text: '{}Hi', marks });
    const shown = await run([breaksOff], { job: { ...asked, reasoning: 'shown' } });
    expect([shown.kind, deltas?.text, calls]).toEqual(['failed', '{}', 3]);
  });

  it('whose reply has calls -> its marks are in the deltas and in the outcome, which has no field for none', async () => {
    const mark: Mark = { kind: 'call', at: 2, id: 'a', name: 'f' };
    const marked: Run = async (_, onDelta) => {
      onDelta?.('Hi');
      onDelta?.('{}', mark);
      return { ...reply, text: 'Hi{}', marks: [mark] };
    };
    const outcome = await run([marked], { job: { stream: true, parameters: { tools: [{ name: 'f' }] } } });
    expect(outcome).toMatchObject({ kind: 'ok', text: 'Hi{}', marks: [mark] });
    expect(deltas).toMatchObject({ text: 'Hi{}', marks: [mark] });
    expect(decodeOutcome(encodeOutcome(outcome))).toEqual(outcome);
    const without = JSON.parse(encodeOutcome(await run([gives({ marks: [] })])));
    expect('marks' in without).toBe(false);
  });

  it('with a hint that its model refuses -> asked again although the model is on trial, for which it shows nothing', async () => {
    for (let n = 0; n < 5; n += 1) await run([fails(broken)], { job: { attempt: 2 } });
    expect(open.gate.worstState).toBe('open');
    await vi.waitFor(() => expect(open.gate.worstState).toBe('half-open'), patience);
    calls = 0;
    const job = { parameters: { temperature: 0.5, seed: 1 } };
    const steps = [refuses(400, '`seed` is not supported'), writes];
    expect(await run(steps, { job })).toMatchObject({ kind: 'ok', ignored: ['temperature', 'seed'] });
    expect([calls, open.gate.worstState]).toEqual([2, 'closed']);
  });
});

describe('a turn with images', () => {
  const stored: ImagePart = { type: 'image', mediaType: 'image/png', sha256: 'a'.repeat(64), bytes: 1 };
  const turnsWith = (image: ImagePart): Turn[] => [{ role: 'user', content: [image] }];

  it.each<[string, ImagePart, number]>([
    ['stored -> asked with their bytes, as those of its user', stored, 1],
    ['linked -> asked as it is', { type: 'image', url: 'https://x' }, 0],
  ])('that are %s', async (_, image, loads) => {
    const turns = turnsWith(image);
    const read = turnsWith({ ...stored, data: 'AA==' } as ImagePart);
    const withImages = vi.fn(async () => read);
    const seen: unknown[] = [];
    const step: Run = async (request) => {
      seen.push(request.turns);
      return reply;
    };
    await run([step], { job: { turns }, deps: { withImages } });
    expect(withImages.mock.calls).toEqual(Array(loads).fill([turns, 'me']));
    expect(seen).toEqual([loads ? read : turns]);
  });

  it('that cannot be read, after the end of the call -> ends as the call does', async () => {
    const stop = new AbortController();
    const withImages = async () => {
      stop.abort(new Failure('timeout'));
      throw new Failure('internal', { retryable: true });
    };
    const own = { job: { turns: turnsWith(stored) }, deps: { withImages }, stop };
    expect(await run([writes], own)).toMatchObject({ code: 'timeout' });
  });
});

describe('a job whose texts lie beside it', () => {
  const turns: Turn[] = [{ role: 'user', content: 'x'.repeat(2000) }];
  const jobWith = (bytes: number) => ({ turns: undefined, texts: { sha256: 'a', bytes } });

  it.each([
    ['2 MiB -> asked with its texts', 2_097_152, 0],
    ['more -> asked with words for them, and its body is filled', 2_097_153, 1],
  ])('of %s', async (_, bytes, fills) => {
    const seen: unknown[] = [];
    const fill = vi.fn(async () => new Uint8Array());
    const step: Run = async (request) => {
      seen.push(request.turns);
      await request.fillBody?.('{}');
      return reply;
    };
    await run([step], { job: jobWith(bytes), deps: { readTexts: async () => ({ turns }), fill } });
    expect(fill).toHaveBeenCalledTimes(fills);
    const content = fills ? expect.stringMatching(/^text-[\w-]+-0\.$/) : turns[0]?.content;
    expect(seen).toEqual([[{ role: 'user', content }]]);
  });

  it('that cannot be read -> a retryable internal; that is cancelled meanwhile -> cancelled, without a call', async () => {
    const lost = new Failure('internal', { retryable: true });
    const readTexts = () => Promise.reject(lost);
    const failed = await run([writes], { job: jobWith(3_000_000), deps: { readTexts } });
    expect(failed).toMatchObject({ kind: 'failed', code: 'internal', retryable: true });
    const stop = new AbortController();
    const deps = {
      readTexts: async () => {
        stop.abort(new Cancelled());
        return { turns };
      },
    };
    expect(await run([writes], { job: jobWith(3_000_000), deps, stop })).toMatchObject({ kind: 'cancelled' });
    expect(calls).toBe(0);
  });
});

describe('the job of a stored chat', () => {
  const job = { keptUntil: now + 120_000 };
  const recorded = () => [...records.values()].map((text) => decodeStoredResult(text).outcome);

  it('is answered -> recorded before it ends; a worker that takes it over, however late, makes no call', async () => {
    const outcome = await run([writes], { job });
    expect(outcome).toMatchObject({ kind: 'ok', text: 'Hello' });
    expect(recorded()).toEqual([outcome]);
    for (const deadline of [now + 60_000, now - 1])
      expect(await run([writes], { job: { ...job, deadline } })).toEqual(outcome);
    expect(calls).toBe(1);
  });

  it.each<[string, object, () => ReturnType<typeof run>]>([
    ['is cancelled', { kind: 'cancelled' }, () => runStopped(new Cancelled(), job)],
    ['fails', { code: 'provider_error' }, () => run([fails(broken)], { job })],
    ['comes too late', { code: 'timeout' }, () => run([writes], { job: { ...job, deadline: now } })],
  ])('%s -> recorded as that', async (_, end, ended) => {
    const outcome = await ended();
    expect(outcome).toMatchObject(end);
    expect(recorded()).toEqual([outcome]);
  });

  it('is lost, or ends in an unexpected error, which its pool worker records -> not recorded', async () => {
    const [lost, unexpected] = [new LockLost(), new TypeError('x')];
    await expect(runStopped(lost, job)).rejects.toBe(lost);
    await expect(run([fails(unexpected)], { job })).rejects.toBe(unexpected);
    expect(recorded()).toEqual([]);
  });
});
