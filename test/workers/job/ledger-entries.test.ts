import { describe, expect, it } from 'vitest';
import { decodeOrigin } from '../../../shared/protocol/entries.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import { lostRunsOf, runEntryOf } from '../../../workers/job/ledger-entries.js';
import { meteredRow } from '../../support/calls.js';
import { nameOfTest } from '../../support/entries.js';
import { takeJob } from '../../support/running-jobs.js';

const chat = 'f8c2a3d4-0000-4000-8000-000000000001';
const origin = nameOfTest({ name: 'anna', model: 'gpt' });
const job = (own: Parameters<typeof takeJob>[0] = {}) =>
  takeJob({ id: chat, name: origin, timestamp: 5, now: () => 99, ...own });
const times = { queueMs: 1, providerMs: 2 };
const ok: Outcome = { kind: 'ok', text: 'Hello', model: 'gpt-4', firstTokenMs: 1, ...times };
const endOf = (outcome: Outcome, own = outcome) => ({ end: { own, outcome }, goesOn: false });

describe('the entry of a run', () => {
  it('that answered -> its calls, and how the chat ended', () => {
    const taken = job({ stalledCounter: 1, attemptsStarted: 3 });
    taken.calls.push(meteredRow());
    expect(runEntryOf(taken, endOf(ok))).toEqual({
      ...{ kind: 'run', chat, attempt: 1, origin, addedAt: 5, provider: 'openai', run: 2 },
      calls: [meteredRow()],
      end: {
        ...{ code: 'ok', endedAt: 99, provider: 'openai', model: 'gpt-4' },
        ...{ waitedMs: 1, calledMs: 2, firstTokenMs: 1 },
      },
    });
  });

  const failed = { kind: 'failed', code: 'provider_error', retryable: true, ...times } as const;
  const providerError = { status: 500, type: 'x' };
  const attempts = [{ provider: 'openai', code: 'timeout' }] as const;
  it.each<[string, Parameters<typeof runEntryOf>[1], object | undefined]>([
    [
      'failed -> code, error, and model that was asked',
      endOf({ ...failed, providerError }),
      { code: 'provider_error', error: providerError, model: 'gpt' },
    ],
    [
      'failed last of several -> the code for the caller, the error of the last, and all attempts',
      endOf({ ...failed, code: 'timeout', attempts: [...attempts] }, { ...failed, providerError }),
      { code: 'timeout', error: providerError, attempts: [{ provider: 'openai', code: 'timeout' }] },
    ],
    ['was passed on -> no end', endOf({ ...failed, next: { provider: 'bedrock' } }), undefined],
    ['broke -> internal', { goesOn: false }, { code: 'internal' }],
    ['goes on elsewhere -> no end', { goesOn: true }, undefined],
  ])('that %s', (_, how, end) => {
    const entry = runEntryOf(job(), how);
    if (end) expect(entry).toMatchObject({ end });
    else expect(entry).not.toHaveProperty('end');
  });

  it('that lost its lock -> no end, unless its reply was published', () => {
    const taken = job();
    taken.holdsLock = false;
    expect(runEntryOf(taken, endOf(ok))).not.toHaveProperty('end');
    taken.isPublished = true;
    expect(runEntryOf(taken, endOf(ok))).toHaveProperty('end');
  });

  it('of an attempt that an older release has added -> its user and provider, and nothing more', () => {
    const taken = job({ name: 'chat', data: { user: 'anna', chatId: chat, attempt: 2 }, id: `${chat}-2` });
    const { origin, ...entry } = runEntryOf(taken, endOf(ok));
    expect(entry).toMatchObject({ chat, attempt: 2 });
    expect(decodeOrigin(origin)).toMatchObject({ user: 'anna', provider: 'openai', api: '' });
  });
});

describe('the runs before one', () => {
  it('were lost -> said once with their number, and how a job ends that is given up', () => {
    expect(lostRunsOf(job())).toEqual([]);
    expect(lostRunsOf(job({ stalledCounter: 2 }))).toMatchObject([{ kind: 'lost', runs: 2 }]);
    const [given] = lostRunsOf(job({ stalledCounter: 2, deferredFailure: 'stalled' }));
    expect(given).toMatchObject({ runs: 2, end: { code: 'internal', endedAt: 99 } });
  });
});
