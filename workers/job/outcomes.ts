import type { ProviderId } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import { workCodes } from '../../shared/metrics/metrics.js';
import type { EndedAttempt } from '../../shared/protocol/attempts.js';
import type { ChatJob } from '../../shared/protocol/messages.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import { Cancelled, LockLost } from '../gate/gated-call.js';
import {
  callErrorOf,
  providerErrorOf,
  refusesCredentials,
} from '../providers/errors/error-classification.js';
import type { Refusal } from '../providers/errors/refusals.js';
import type { ProviderReply } from '../providers/provider.js';

export type Timings = Pick<Outcome, 'queueMs' | 'providerMs' | 'firstTokenMs'>;

/** A code that calls and jobs are counted by. */
export type WorkCode = (typeof workCodes)[number];

/** How a job ended. */
export interface JobEnd {
  readonly own: Outcome;
  /** The outcome of the chat with all attempts, or the attempt that follows. */
  readonly outcome: Outcome;
}

interface ReplyFacts extends Timings, Pick<Extract<Outcome, { kind: 'ok' }>, 'callId' | 'askedModel'> {
  readonly ignored?: readonly string[] | undefined;
  readonly changes?: readonly string[] | undefined;
}

/** A reply as an outcome for the API. */
export function toOutcome(reply: ProviderReply, facts: ReplyFacts): Outcome {
  const { text, marks = [], reason, refusal, model, usage } = reply;
  const { callId, askedModel, ignored, changes, ...timings } = facts;
  const made = { ignored: ignored && [...ignored], changes: changes && [...changes] };
  const parts = { marks: marks.length > 0 ? [...marks] : undefined, ...made };
  const completion = { text, ...parts, model, askedModel, usage, callId, ...timings };
  if (reason === 'blocked') return { kind: 'blocked', refusal, usage, ...timings };
  return { kind: reason === 'stop' ? 'ok' : 'truncated', ...completion };
}

/** A failure as an outcome for the API. */
export function toFailedOutcome(failure: Failure, timings: Timings): Outcome {
  const { code, retryable, facts } = failure;
  const { refusal, capability } = callErrorOf(failure) ?? {};
  return {
    kind: 'failed',
    code,
    retryable,
    retryAfterMs: facts.retryAfterMs,
    credentialsRefused: refusesCredentials(failure) || undefined,
    providerError: providerErrorOf(failure),
    refusedParameter: refusedBy(refusal) ?? facts.refusedParameter,
    capability,
    failingModel: facts.model,
    usage: facts.usage,
    contextTokens: facts.contextTokens,
    askedTokens: facts.askedTokens,
    limitMs: facts.limit?.ms,
    fellSilent: facts.limit?.fellSilent,
    ...timings,
  };
}

/** The parameter of the request that a refusal is about, where the API says more of it than its place. */
function refusedBy(refusal: Refusal | undefined): string | undefined {
  if (refusal === 'toolChoice') return refusal;
  return refusal === 'laterSystem' ? 'messages' : undefined;
}

/** The code of what a call or a job was ended by. */
export function codeOfError(error: unknown): WorkCode {
  if (error instanceof Cancelled || error instanceof LockLost) return 'cancelled';
  return error instanceof Failure ? countedCode(error.code) : 'internal';
}

/** The code of a job with this outcome. */
export function codeOfOutcome(outcome: Outcome): WorkCode {
  if (outcome.kind === 'failed') return countedCode(outcome.code);
  if (outcome.kind === 'cancelled') return 'cancelled';
  return outcome.kind === 'blocked' ? 'content_blocked' : 'ok';
}

const countedCode = (code: string): WorkCode => workCodes.find((listed) => listed === code) ?? 'internal';

/** The log fields of an outcome, and of the provider to which the chat was passed on. */
export function describeOutcome(own: Outcome, next: ProviderId | undefined): object {
  const { kind, queueMs, providerMs } = own;
  const usage = 'usage' in own ? own.usage : undefined;
  const code = kind === 'failed' ? own.code : kind;
  return { outcome: code, next, queueMs, providerMs, ...usage };
}

/** The attempt that ended with this outcome of its job. */
export function toEndedAttempt(own: Outcome, { provider, model }: ChatJob): EndedAttempt {
  const { queueMs, providerMs } = own;
  const attempt = { provider, model, usage: 'usage' in own ? own.usage : undefined, queueMs, providerMs };
  if (own.kind === 'ok' || own.kind === 'truncated') return { ...attempt, model: own.model, code: 'ok' };
  if (own.kind !== 'failed') return { ...attempt, code: 'content_blocked' };
  const { code, retryable, retryAfterMs, credentialsRefused, failingModel = model } = own;
  const { providerError, contextTokens, askedTokens, limitMs, fellSilent } = own;
  const facts = { code, retryable, retryAfterMs, credentialsRefused, providerError, contextTokens };
  return { ...attempt, model: failingModel, ...facts, askedTokens, limitMs, fellSilent };
}

/**
 * The outcome of the chat after these attempts, the last of which ended with `own`: if all attempts have failed, with
 * the code of the first, unless the deadline ended the last: callers who asked by then got that answer.
 */
export function conclude(own: Outcome, attempts: readonly EndedAttempt[]): Outcome {
  const [first, ...more] = attempts;
  if (first === undefined || more.length === 0 || own.kind === 'cancelled') return own;
  const total = (name: 'queueMs' | 'providerMs') =>
    attempts.reduce((sum, attempt) => sum + (attempt[name] ?? 0), 0);
  const all = { queueMs: total('queueMs'), providerMs: total('providerMs'), attempts: [...attempts] };
  if (own.kind !== 'failed' || own.code === 'timeout' || first.code === 'ok') return { ...own, ...all };
  const { code, retryAfterMs, credentialsRefused, contextTokens, askedTokens, limitMs, fellSilent } = first;
  const retryable = attempts.some((attempt) => attempt.retryable);
  const facts = { code, retryable, retryAfterMs, credentialsRefused, contextTokens, askedTokens };
  return { kind: 'failed', ...facts, limitMs, fellSilent, ...all };
}
