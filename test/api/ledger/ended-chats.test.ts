import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type EndAttempt, EndedChats } from '../../../api/ledger/ended-chats.js';
import type { ProviderId } from '../../../shared/contracts/contract.js';
import { createRecordingLog } from '../../support/recording-log.js';

let nowMs: number;
let closed: ProviderId[];
let chats: EndedChats;
beforeEach(() => {
  [nowMs, closed] = [1000, []];
  chats = new EndedChats({ isOpen: (provider) => !closed.includes(provider), now: () => nowMs });
});

const attempt = (code: string, own: Partial<EndAttempt> = {}): EndAttempt => ({
  ...{ provider: 'openai', model: 'm', code },
  ...own,
});
const record = (code: string, attempts: EndAttempt[] = []) =>
  chats.record({ provider: 'openai', model: 'm', code, attempts });
const end = (code: string, own: Partial<EndAttempt> = {}) => record(code, [attempt(code, own)]);

describe('a chat that ended', () => {
  const refused = (status: number) => ({ providerError: { status } });
  it.each<[string, failed: number, own?: Partial<EndAttempt>]>([
    ['ok', 0],
    ['content_blocked', 0],
    ['cancelled', 0],
    ['context_length_exceeded', 0],
    ['provider_rejected', 0, refused(400)],
    ['provider_rejected', 0, refused(404)],
    ['provider_rejected', 1, refused(401)],
    ['provider_rejected', 1, refused(403)],
    ['provider_error', 1],
    ['provider_timeout', 1],
    ['provider_rate_limited', 1],
    ['provider_unavailable', 1],
    ['overloaded', 1],
    ['timeout', 1],
  ])('with %s -> of one chat %d failed', (code, failed, own) => {
    end(code, own);
    const named = failed > 0 ? { code, model: 'm' } : {};
    expect(chats.counts()).toEqual([{ provider: 'openai', ended: 1, failed, ...named }]);
  });

  it.each<[string, counted: boolean]>([
    ['overloaded', true],
    ['provider_unavailable', true],
    ['timeout', true],
    ['invalid_request', false],
    ['queue_unavailable', false],
  ])('before it had a job, with %s -> counts only by the fault of its pool: %s', (code, counted) => {
    record(code);
    const expected = { provider: 'openai', ended: 1, failed: 1, code, model: 'm' };
    expect(chats.counts()).toEqual(counted ? [expected] : []);
  });

  it('after several attempts -> counts once at each of their providers, by the last one there', () => {
    const other = { provider: 'bedrock', model: 'b' } as const;
    record('ok', [attempt('provider_error'), attempt('timeout', { model: 'n' }), attempt('ok', other)]);
    expect(chats.counts()).toEqual([
      { provider: 'bedrock', ended: 1, failed: 0 },
      { provider: 'openai', ended: 1, failed: 1, code: 'timeout', model: 'n' },
    ]);
  });

  it('while operators pause or drain its provider -> does not count', () => {
    closed = ['openai'];
    record('provider_unavailable');
    end('timeout');
    closed = [];
    end('ok');
    expect(chats.counts()).toEqual([{ provider: 'openai', ended: 1, failed: 0 }]);
  });

  it('as thousands of others did -> all count', () => {
    for (let n = 0; n < 20_000; n += 1) end(n < 9000 ? 'timeout' : 'ok');
    expect(chats.counts()).toMatchObject([{ ended: 20_000, failed: 9000 }]);
  });

  it('five minutes ago -> no longer counts', () => {
    for (const _ of [1, 2]) end('timeout', { model: 'old' });
    nowMs += 299_000;
    end('provider_error');
    expect(chats.counts()).toMatchObject([{ ended: 3, failed: 3, code: 'provider_error', model: undefined }]);
    nowMs += 1000;
    expect(chats.counts()).toMatchObject([{ ended: 1, failed: 1, model: 'm' }]);
    nowMs += 300_000;
    expect(chats.counts()).toEqual([]);
  });

  it.each([
    [['a', 'a'], 'a'],
    [['a', 'b'], undefined],
    [['a', 'b', 'b'], undefined],
    [['a', undefined], undefined],
    [[undefined, 'a'], undefined],
  ])('with the models %j -> the model of all is %s', (models, model) => {
    for (const apartMs of [0, 10_000]) {
      chats = new EndedChats({ isOpen: () => true, now: () => nowMs });
      end('ok', { model: 'well' });
      for (const each of models) {
        end('provider_error', { model: each });
        nowMs += apartMs;
      }
      expect(chats.counts()[0]?.model).toBe(model);
    }
  });
});

describe('the counts', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const { log } = createRecordingLog();
  const sent = { provider: 'openai', ended: 1, failed: 1, code: 'timeout', model: 'm' };
  const message = (counts: object[]) => ['processes', { v: 1, worker: 'api', pools: [], chats: counts }];
  function publish(broadcast: () => Promise<void>) {
    const addChats = vi.fn();
    const published = vi.fn(broadcast);
    const relay = { nodeId: 'api', broadcast: published };
    onTestFinished(chats.publish({ relay, heartbeats: { addChats } }, log));
    return { addChats, published };
  }

  it('while there are any, and once after that -> are published, and known here at once', async () => {
    const { addChats, published } = publish(async () => undefined);
    await vi.advanceTimersByTimeAsync(2000);
    expect(published).not.toHaveBeenCalled();
    end('timeout');
    await vi.advanceTimersByTimeAsync(2000);
    expect(published.mock.calls).toEqual([message([sent]), message([sent])]);
    expect(addChats).toHaveBeenLastCalledWith('api', [sent]);
    nowMs += 300_000;
    await vi.advanceTimersByTimeAsync(3000);
    expect(published.mock.calls.slice(2)).toEqual([message([])]);
  });

  it('while the store hangs, and then fails -> none wait behind one, and they go on', async () => {
    const hanging = Promise.withResolvers<void>();
    const { published } = publish(() => hanging.promise);
    end('timeout');
    await vi.advanceTimersByTimeAsync(5000);
    expect(published).toHaveBeenCalledTimes(1);
    hanging.reject(new Error('the store is down'));
    await vi.advanceTimersByTimeAsync(1000);
    expect(published).toHaveBeenCalledTimes(2);
  });
});
