import type { PoolConfig } from '../../shared/config/pool-config.js';
import { givenFields } from '../../shared/json/json.js';
import type { MeteredRow } from '../../shared/protocol/entries.js';
import type { ChatJob } from '../../shared/protocol/messages.js';
import type { Mark } from '../../shared/protocol/parts.js';
import type { GatedCall, Pass } from '../gate/gated-call.js';
import type { ProviderReply } from '../providers/provider.js';
import type { CallMeter } from '../providers/reply/call-meter.js';
import { imageBytesOf, type ModelRequest, type Omittable } from './model-request.js';

/** A call of its provider that a job makes. Each step of the call chain hands it on with what the next ones need. */
export interface Call extends GatedCall {
  readonly job: CallingJob;
  readonly chatJob: Pick<ChatJob, 'provider' | 'deadline' | 'attempt' | 'isStrict' | 'texts'>;
  readonly request: ModelRequest;
  /** The parts that it is made without because an earlier call of its job was refused for them. */
  readonly omitted: readonly Omittable[];
  /** Whether it is made with the parts that its model has refused before. */
  readonly isWhole: boolean;
  /** The time from which it is of use only if its reply has begun, in milliseconds since the epoch. */
  readonly deadline: number;
  readonly settings: PoolConfig;
  readonly progress: CallProgress;
  /** To be called when the first part of a stream is shown. */
  readonly show: () => void;
}

/** A call that may begin. */
export type PassedCall = Call & { readonly pass: Pass };

/** A call with the request that it makes. */
export type PreparedCall = PassedCall & { readonly sent: ModelRequest };

/** A call whose cost is heard. */
export type MeteredCall = PreparedCall & { readonly meter: CallMeter };

/** A call that ends in time. */
export interface TimedCall extends MeteredCall {
  readonly signal: AbortSignal;
  /** To be called for each complete line or frame that the provider sends. */
  readonly onLife: () => void;
  /** To be called for the first part of the reply. */
  readonly onBegin: () => void;
  /** The span of the call, when it is traced. */
  readonly traceparent?: string | undefined;
}

/** Makes a call, or hands it on to what makes it. */
export type Next<C extends Call> = (call: C) => Promise<ProviderReply>;

/** The state of a call that its job and the retry read. */
export interface CallProgress {
  /** Whether the provider has given a sign of life. */
  isAlive: boolean;
  /** Whether a part of the reply has come: thinking, opaque data, text or a call. */
  hasBegun: boolean;
  /** Whether a part of the reply may have been read. */
  isShown: boolean;
  /** The request's hints that it was made without, because the model refuses them; absent means none. */
  ignored: readonly string[] | undefined;
  /** How the conversation was changed for the provider; absent means not at all. */
  changes?: readonly string[] | undefined;
  /** The request that was sent, and the parts that its model was known to refuse; undefined until it is made. */
  sent: { readonly request: ModelRequest; readonly known: readonly Omittable[] } | undefined;
}

/** A job, as far as its calls know it. */
export interface CallingJob {
  readonly id: string;
  readonly queued: { readonly priority?: number; readonly timestamp: number };
  readonly signal: AbortSignal;
  readonly now: () => number;
  readonly deltas: { append(text: string, mark?: Mark): void } | undefined;
  readonly trace: { watchCall(call: TimedCall, next: Next<TimedCall>): Promise<ProviderReply> } | undefined;
  /** Its calls that were sent and have ended. */
  readonly calls: MeteredRow[];
  /** The progress of its latest call. */
  progress: CallProgress | undefined;
  begin(): void;
  recordFirstDelta(): void;
}

type ChatTimes = Pick<ChatJob, 'deadline' | 'firstDeltaBy'>;

interface CallFacts extends Pick<Call, 'job' | 'request' | 'settings'> {
  readonly chatJob: Call['chatJob'] & ChatTimes & Pick<ChatJob, 'provider' | 'user' | 'fallback'>;
}

/** The first call of a job. */
export function firstCall({ job, chatJob, request, settings }: CallFacts): Call {
  const deadline = startOf(chatJob);
  return openCall({
    kind: 'first',
    job,
    jobId: job.id,
    priority: job.queued.priority ?? 0,
    addedAt: job.queued.timestamp,
    stop: job.signal,
    chatJob,
    user: chatJob.user,
    deadline,
    leftMs: () => deadline - job.now(),
    request,
    model: request.model,
    besideBytes: imageBytesOf(request) + (chatJob.texts?.bytes ?? 0),
    omitted: [],
    isWhole: false,
    settings,
    pauseMs: 0,
    hasFallback: Boolean(chatJob.fallback?.length),
    isRead: job.deltas !== undefined,
  });
}

interface Again extends Partial<Pick<Call, 'pauseMs' | 'patienceMs'>> {
  kind: 'retry' | 'repetition';
  omitted?: readonly Omittable[];
  isWhole?: boolean;
}

/** The next call: once more, or without the parts for which the one before was refused. */
export const retryOf = (call: Call, { omitted = [], pauseMs = 0, ...again }: Again): Call => {
  const opened = openCall({ ...call, ...again, pauseMs, omitted: [...call.omitted, ...omitted] });
  return { ...opened, ...givenFields({ patienceMs: again.patienceMs }) };
};

function openCall(call: Omit<Call, 'patienceMs' | 'progress' | 'show'>): Call {
  const progress = { isAlive: false, hasBegun: false, isShown: false, ignored: undefined, sent: undefined };
  const patienceMs = call.hasFallback ? patienceFor(call.leftMs()) : longestPatienceMs;
  return { ...call, patienceMs, progress, show: () => call.job.recordFirstDelta() };
}

/** The time from which a call is of use only if it has begun to answer, in milliseconds since the epoch. */
export const startOf = ({ deadline, firstDeltaBy = deadline }: ChatTimes): number =>
  Math.min(deadline, firstDeltaBy);

const maxPatienceMs = 3000;
/** Without a fallback: a client that would wait for minutes is better answered with a `Retry-After`. */
export const longestPatienceMs = 60_000;

/** How long a job with a fallback waits for its model, in milliseconds: a third of its time is for the next. */
export const patienceFor = (leftMs: number): number => Math.min(maxPatienceMs, (leftMs * 2) / 3);
