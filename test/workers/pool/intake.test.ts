import { EventEmitter } from 'node:events';
import type { Job, Worker } from 'bullmq';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { BlobName } from '../../../shared/queue/blobs.js';
import { LockLost } from '../../../workers/gate/gated-call.js';
import { RunningJobs } from '../../../workers/job/running-jobs.js';
import { Intake } from '../../../workers/pool/intake.js';
import { poolSettings } from '../../support/chat-jobs.js';
import { noLedger } from '../../support/entries.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { unavailableResults } from '../../support/stored-results.js';

let intake: Intake;
let worker: Worker;
/** Ends what BullMQ does with its jobs. */
let processed: PromiseWithResolvers<void>;
let jobs: RunningJobs;
let logged: ReturnType<typeof createRecordingLog>;
/** The tokens of the locks that were held whenever late locks would have been renewed. */
let heldWhenLate: string[][];
let published: string[];
let counted: string[];

const held = () => [...jobs.ofPool('openai')].filter(({ holdsLock }) => holdsLock).map(({ token }) => token);
const queuedJob = (id: string, data: object = {}, updateData = async () => {}): Job =>
  ({ id, data, updateData, timestamp: 0, attemptsStarted: 1 }) as unknown as Job;
const unused = () => expect.unreachable();
/** The names of the texts that were removed. */
let removed: string[];
const blobs = {
  ...{ extend: unused, write: unused, read: unused, removeEnded: unused },
  remove: async ({ user, key }: BlobName) => void removed.push(`${user} ${key}`),
};

beforeEach(() => {
  processed = Promise.withResolvers();
  jobs = new RunningJobs();
  logged = createRecordingLog();
  [heldWhenLate, published, counted, removed] = [[], [], [], []];
  const { log } = logged;
  intake = new Intake({
    provider: { id: 'openai' },
    settings: { current: poolSettings() },
    store: { now: Date.now, blobs },
    readTexts: unused,
    jobs,
    locks: { renewIfLate: () => void heldWhenLate.push(held()) },
    replies: {
      publish: ({ chatId }, outcome, { isStored = false } = {}) =>
        void published.push(`${chatId}: ${outcome}, ${isStored ? 'stored' : 'not stored'}`),
      publishFailure: ({ chatId }) => void published.push(`${chatId} failed`),
    },
    deltas: { open: unused },
    nextAttempts: { find: unused, begin: unused },
    call: unused,
    storedResults: unavailableResults(log),
    times: { meanMs: 0 },
    backlog: { forget: () => {}, recordEmpty: () => {} },
    ledger: noLedger,
    metrics: { countJob: (code) => void counted.push(code) },
    listeners: [],
    log,
  });
  const events = Object.assign(new EventEmitter(), { processJob: () => processed.promise });
  worker = events as unknown as Worker;
  intake.attach(worker);
});

describe('a job that BullMQ has fetched', () => {
  it.each([
    ['is done with', () => processed.resolve()],
    ['could not end', () => processed.reject(new Error('the store takes neither an outcome nor a failure'))],
  ])('and then %s -> is held in between', async (_, end) => {
    const taken = worker.processJob(queuedJob('one'), 'a');
    expect(held()).toEqual(['a']);
    end();
    await taken.catch(() => {});
    expect([held(), jobs.ofChat('one')]).toEqual([[], []]);
  });

  it('while its earlier run goes on here -> that has lost its lock', async () => {
    const taken = [worker.processJob(queuedJob('one'), 'a'), worker.processJob(queuedJob('one'), 'b')];
    expect(held()).toEqual(['b']);
    const reasons = jobs.ofChat('one').map(({ signal }) => signal.reason);
    expect(reasons).toEqual([expect.any(LockLost), undefined]);
    expect(logged.lines).toMatchObject([{ msg: 'jobs lost to another worker', jobIds: ['one'] }]);
    processed.resolve();
    await Promise.all(taken);
    expect(held()).toEqual([]);
  });

  it('or that has ended -> late locks are renewed, with its own until BullMQ is done with it', () => {
    const job = intake.take(queuedJob('one'), 'a');
    job.end(undefined);
    expect(heldWhenLate).toEqual([['a'], ['a']]);
    jobs.close(job);
    expect(held()).toEqual([]);
  });

  it('without having been taken -> is not run', async () => {
    const queued = Object.assign(queuedJob('one'), { moveToWait: unused, moveToDelayed: unused });
    await expect(intake.process(queued)).rejects.toThrow('not taken');
  });
});

describe('an event of BullMQ', () => {
  it('about a job that is here -> published', () => {
    const [ended, broken] = [queuedJob('one'), queuedJob('two')];
    for (const queued of [ended, broken]) intake.take(queued, 'a');
    worker.emit('completed', ended, 'outcome', 'active');
    worker.emit('failed', broken, new Error('canary'), 'active');
    expect([published, counted]).toEqual([['one: outcome, stored', 'two failed'], ['internal']]);
  });

  it('about a job that is not here -> a failure is counted and logged, and nothing is published', () => {
    worker.emit('completed', queuedJob('one'), 'outcome', 'active');
    worker.emit('failed', queuedJob('two'), new Error('canary'), 'active');
    worker.emit('failed', undefined, new Error('canary'), 'active');
    expect([published, counted]).toEqual([[], ['internal', 'internal']]);
    expect(logged.lines.map(({ msg, jobId }) => [msg, jobId])).toEqual([
      ['job broke', 'two'],
      ['job broke', undefined],
    ]);
  });
});

describe('a job that has ended, with a request of', () => {
  it.each([
    ['8,000 letters', 'x'.repeat(8000), '', 0],
    ['8,000 letters, and 9,000 of tools', 'x'.repeat(8000), 'x'.repeat(9000), 1],
    ['8,000 characters of three bytes', '雨'.repeat(8000), '', 1],
  ])('%s -> keeps at most 16 KB of it', (_, turns, parameters, times) => {
    const updateData = vi.fn(async () => {});
    const queued = queuedJob('one', { v: 2, turns, parameters, model: 'm' }, updateData);
    worker.emit('completed', queued, 'outcome', 'active');
    worker.emit('failed', queued, new Error('canary'), 'active');
    expect(updateData.mock.calls).toEqual(Array(2 * times).fill([{ v: 2, turns: '[]', model: 'm' }]));
  });
});

describe('a job whose texts lie beside it', () => {
  const texts = { sha256: 'digest', bytes: 2_000_000 };
  const failed = { v: 1, kind: 'failed', code: 'provider_error', retryable: true, queueMs: 0, providerMs: 0 };
  const next = { provider: 'anthropic', attempt: 2, fallback: [], earlier: [] };
  const fallback = [{ provider: 'anthropic' }];
  it.each<[string, object, object | undefined, string[]]>([
    ['ends -> they are removed', {}, failed, ['me one.digest']],
    ['is the last of its chat -> its chat names them', { chatId: 'chat' }, failed, ['me chat.digest']],
    ['ends, and its fallback goes on -> they stay', { fallback }, { ...failed, next }, []],
    ['ends before its fallback -> they are removed', { fallback }, failed, ['me one.digest']],
    ['breaks -> they are removed', {}, undefined, ['me one.digest']],
    ['breaks, and its fallback may have begun -> they stay', { fallback }, undefined, []],
  ])('%s', (_, own, outcome, names) => {
    const queued = queuedJob('one', { v: 4, user: 'me', texts, ...own });
    if (outcome) worker.emit('completed', queued, JSON.stringify(outcome), 'active');
    else worker.emit('failed', queued, new Error('canary'), 'active');
    expect(removed).toEqual(names);
  });
});
