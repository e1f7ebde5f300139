import type { PoolConfig } from '../../shared/config/pool-config.js';
import { givenFields } from '../../shared/given-fields.js';
import { type Asked, Call } from '../../workers/job/call.js';
import type { DeltaStream } from '../../workers/job/delta-stream.js';
import { ModelMemory } from '../../workers/job/model-memory.js';
import { openSlot } from './circuits.js';

type Own = Partial<Pick<Call, 'deadline' | 'stop' | 'slot' | 'user' | 'hasBegun'>> & {
  isRetry?: boolean;
  attempt?: number;
  now?: () => number;
  firstDeltaBy?: number;
  isStrict?: true;
  deltas?: DeltaStream;
  settings?: Partial<PoolConfig>;
} & Partial<Pick<Asked, 'circuit' | 'hasFallback' | 'request' | 'schema'>>;

/** A call of a job that has what the steps of the call chain read, and makes none. */
export function callOf(own: Own = {}): Call {
  const { now = Date.now, user, hasFallback = false, attempt = 1, isRetry = false } = own;
  const circuit = own.circuit ?? {
    run: (call, next) => next(call),
    park: () => {},
    cooldown: { leftMs: 0 },
    budget: { earn: () => {}, spend: () => true },
    memory: new ModelMemory(),
  };
  const job = {
    ...{ id: 'job', now, deltas: own.deltas, trace: undefined, begin: () => {}, recordFirstDelta: () => {} },
    ignored: undefined,
    signal: own.stop ?? new AbortController().signal,
    slot: own.slot ?? openSlot(),
  };
  const { deadline = now() + 20_000, firstDeltaBy = deadline } = own;
  const chatJob = { user, attempt, deadline, firstDeltaBy, ...givenFields({ isStrict: own.isStrict }) };
  const { request = { model: 'm', maxOutputTokens: 1, turns: [] }, schema } = own;
  const settings = {
    ...{ concurrency: 1, timeoutMs: 1000, firstTokenTimeoutMs: 1000, idleTimeoutMs: 1000 },
    ...{ model: 'm', maxOutputTokens: 1, breakerResetMs: 1000 },
    ...own.settings,
  };
  const call = new Call({ job, chatJob, request, schema, circuit, settings, hasFallback }, { isRetry });
  call.hasBegun = own.hasBegun ?? false;
  return call;
}
