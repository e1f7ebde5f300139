import type { PoolConfig } from '../../shared/config/pool-config.js';
import { givenFields } from '../../shared/given-fields.js';
import type { AdmittedCall } from '../../workers/gate/gated-call.js';
import { type Asked, Call } from '../../workers/job/call.js';
import type { DeltaStream } from '../../workers/job/delta-publisher.js';
import { ModelNotes } from '../../workers/job/model-notes.js';
import { openSlot } from './circuits.js';

type Own = Partial<Pick<Call, 'deadline' | 'stop' | 'slot' | 'user' | 'hasBegun'>> & {
  isRetry?: boolean;
  attempt?: number;
  now?: () => number;
  firstDeltaBy?: number;
  isStrict?: true;
  deltas?: DeltaStream;
  settings?: Partial<PoolConfig>;
} & Partial<Pick<Asked, 'circuit' | 'notes' | 'hasFallback' | 'request' | 'schema'>>;

/** A call of a job that has what the steps of the call chain read, and makes none. */
export function callOf(own: Own = {}): Call {
  const { now = Date.now, user, hasFallback = false, attempt = 1, isRetry = false } = own;
  const { notes = new ModelNotes() } = own;
  const circuit = own.circuit ?? {
    run: (_, next) => next(admittedCall()),
    cooldown: { leftMs: 0 },
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
  const asked = { job, chatJob, request, schema, circuit, notes, settings, hasFallback };
  const call = new Call(asked, isRetry ? 'retry' : 'first');
  call.hasBegun = own.hasBegun ?? false;
  return call;
}

/** A call that its circuit has let in just now. */
export const admittedCall = (own: Partial<AdmittedCall> = {}): AdmittedCall => ({
  ...{ user: undefined, progress: { hasBegun: false }, isProbe: false, isUsersProbe: false, isCompiling: false },
  startedAt: performance.now(),
  park: () => true,
  ...own,
});
