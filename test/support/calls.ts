import type { PoolConfig } from '../../shared/config/pool-config.js';
import type { ProviderId } from '../../shared/contracts/contract.js';
import { givenFields } from '../../shared/json/json.js';
import type { MeteredRow } from '../../shared/protocol/entries.js';
import type { Pass } from '../../workers/gate/gated-call.js';
import { type Call, type CallingJob, firstCall, retryOf, type TimedCall } from '../../workers/job/call.js';
import type { DeltaStream } from '../../workers/job/delta-stream.js';

type Own = Partial<Pick<Call, 'deadline' | 'stop' | 'user' | 'hasFallback' | 'request'>> & {
  isAlive?: boolean;
  hasBegun?: boolean;
  isShown?: boolean;
  isRetry?: boolean;
  priority?: number;
  addedAt?: number;
  provider?: ProviderId;
  attempt?: number;
  now?: () => number;
  firstDeltaBy?: number;
  isStrict?: true;
  deltas?: DeltaStream;
  settings?: Partial<PoolConfig>;
};

/** A call of a job that has what the steps of the call chain read, and makes none. */
export function callOf(own: Own = {}): Call {
  const { now = Date.now, user, hasFallback = false, attempt = 1, isRetry = false } = own;
  const job: CallingJob = {
    ...{ id: 'job', now, deltas: own.deltas, trace: undefined, progress: undefined, calls: [] },
    ...{ begin: () => {}, recordFirstDelta: () => {} },
    signal: own.stop ?? new AbortController().signal,
    queued: { priority: own.priority ?? 0, timestamp: own.addedAt ?? 0 },
  };
  const { deadline = now() + 20_000, firstDeltaBy = deadline } = own;
  const fallback = hasFallback ? [{ provider: 'anthropic' as const }] : undefined;
  const times = { deadline, firstDeltaBy, ...givenFields({ isStrict: own.isStrict }) };
  const chatJob = { provider: own.provider ?? ('openai' as const), user: 'u', attempt, fallback, ...times };
  const { request = { model: 'm', maxOutputTokens: 1, turns: [] } } = own;
  const settings = {
    ...{ concurrency: 1, timeoutMs: 1000, firstTokenTimeoutMs: 1000, idleTimeoutMs: 1000 },
    ...{ model: 'm', breakerResetMs: 1000 },
    ...own.settings,
  };
  const first = { ...firstCall({ job, chatJob, request, settings }), user };
  const { isAlive, hasBegun, isShown } = own;
  Object.assign(first.progress, givenFields({ isAlive, hasBegun, isShown }));
  return isRetry ? retryOf(first, { kind: 'retry' }) : first;
}

/** The gate's answer to a call that is no probe. */
export const pass: Pass = { isProbe: false, onLife: () => {} };

/** A call that is about to be made. */
export const madeCallOf = (own: Own = {}): TimedCall => {
  const call = callOf(own);
  const sent = { ...call.request, isStreamed: own.deltas !== undefined };
  const timed = { sent, signal: call.stop, onLife: () => {}, onBegin: () => {} };
  const meter = { sent: () => {}, head: () => {}, heard: () => {} };
  return { ...call, ...timed, pass, meter };
};

/** The row of a call that was answered. */
export const meteredRow = (own: Partial<MeteredRow> = {}): MeteredRow => ({
  ...{ kind: 'first', startedAt: 0, endedAt: 1, model: 'm', known: 'told', code: 'ok', requests: 1 },
  tokens: { input: 1, cached: 0, written: 0, writtenFor1h: 0, output: 1, thinking: 0 },
  ...own,
});
