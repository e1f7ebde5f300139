import type { UserIdentity } from '../../db/access/users.js';
import { type ChatStatus, type ProviderId, type Target } from '../../shared/contracts/contract.js';
import type { RequestCode } from '../../shared/contracts/ledger.js';
import { type StoredImage } from '../../shared/conversation.js';
import { Failure } from '../../shared/failures.js';
import type { JobOwner } from '../../shared/fleet/live-pools.js';
import type { ModelParameters } from '../../shared/models/model-parameters.js';
import type { ConversationChange } from '../../shared/protocol/alternating-turns.js';
import type { Attempt } from '../../shared/protocol/attempts.js';
import type { WrittenContent } from '../../shared/protocol/chat-content.js';
import type { Origin } from '../../shared/protocol/entries.js';
import type { ChatJob } from '../../shared/protocol/messages.js';
import type { RequestBody } from '../../shared/protocol/request-body.js';
import type { JobClass, ShareLevel } from '../../shared/queue/add-attempt.js';
import type { TraceSpan } from '../../shared/runtime/tracing.js';
import type { JobResult, NewJob } from '../fleet-link/chat-receiver.js';
import type { Completion } from './chat-result.js';
import type { DeltaSink, TextPosition } from './reply-stream.js';
import type { Reservation } from './stored-answers.js';

/** Tells a chat whether its request may still be answered. */
export interface Attachment {
  /** Aborts when the client disconnects, or with a `Failure` when its credentials end. */
  signal: AbortSignal;
  /** Aborts `signal` if the credentials have ended by now; absent means that this is known at once. */
  confirmAccess?: (() => Promise<void>) | undefined;
}

/** A conversation for a provider. */
export interface ChatCommand extends Attachment {
  /** Becomes the job's id, unless another chat is joined. */
  requestId: string;
  /** Id of the user. */
  user: string;
  /** Their name, and how they ask, for operators; absent means that the id stands for it. */
  asker?: Asker | undefined;
  provider: ProviderId;
  /** The provider's own model name; absent means the provider's configured one. */
  model: string | undefined;
  /** The providers to ask when the first one fails, in this order; absent means those that the operators set. */
  fallback?: readonly Target[] | undefined;
  /** Its turns and parameters, as they go to the queue; those beside its job without their bytes once stored. */
  written: WrittenContent;
  /** The providers that do not take one of the parts of its turns, or that a strict chat may not ask for its order. */
  unfitFor: readonly ProviderId[];
  /** How its request's conversation differs from its turns; absent means not at all. */
  changes?: readonly ConversationChange[] | undefined;
  /** The length of its texts on the queue. */
  bytes: number;
  /** The images of its turns whose bytes came along, until they are stored. */
  images?: UploadedImage[] | undefined;
  /** Present where its request goes on as its client wrote it, in place of turns and parameters. */
  body?: RequestBody | undefined;
  /** The request's parameters for the model. Only those that the provider's models support. */
  parameters?: ModelParameters | undefined;
  /** The parts of the reply that the caller can be given beside texts and calls; absent means none. */
  reasoning?: ChatJob['reasoning'];
  /** Whether no provider may be asked that would ignore a parameter, as one of the operators' fallback may. */
  isStrict?: boolean;
  /** How long the caller waits, in milliseconds; absent means the time that follows. */
  waitMs?: number | undefined;
  /** How long callers of its API wait who do not say so, in milliseconds; absent means the time of our own APIs. */
  timeoutMs?: number | undefined;
  /** How long it may wait in line, in milliseconds; absent means the time of our own APIs. */
  queueMs?: number | undefined;
  /** How long the client itself waits for an answer to begin, in milliseconds; absent means for as long as it takes. */
  clientTimeoutMs?: number | undefined;
  /** How long the request has taken so far, in milliseconds: it counts against the deadline. Absent means no time. */
  elapsedMs?: number;
  /** The request's, of which the chat is a part; absent when it is not traced. */
  trace?: TraceSpan | undefined;
  /** Its place among the jobs of its user (`user-shares.ts`); absent means ordinary. */
  jobClass?: JobClass | undefined;
  /** Whether it comes after all chats that are not, as asynchronous ones always do. */
  isLowPriority?: boolean;
  /** Present when the caller reads the reply as it is written. */
  stream?: StreamOptions | undefined;
  /** Present when the chat is stored, so that the caller may come back for it. */
  storeOptions?: StoreOptions | undefined;
}

/** Who asks, and through what. */
export type Asker = Pick<Origin, 'name' | 'token' | 'api' | 'console' | 'session'>;

/** An image that came with a request. */
export interface UploadedImage {
  readonly part: Pick<StoredImage, 'sha256'>;
  readonly bytes: Buffer;
}

/** How a reply is read while it is written. */
export interface StreamOptions {
  readonly sink: DeltaSink;
  /** How far the caller has read it before. */
  readonly from: TextPosition | undefined;
}

/** How a chat is stored. */
export interface StoreOptions {
  readonly owner: UserIdentity;
  readonly key: string | undefined;
  /** Whether the caller wants an answer before the reply is there. */
  readonly isAsync: boolean;
  /** Called with the id of the command's chat as soon as it is known, and whether that had ended before. */
  readonly onResolved: (chatId: string, facts: { isReplayed: boolean }) => void;
}

/** A command whose chat is stored. */
export type StoredChatCommand = ChatCommand & { readonly storeOptions: StoreOptions };

export const isStored = (command: ChatCommand): command is StoredChatCommand =>
  command.storeOptions !== undefined;

/** Throws when the signal has aborted: `unauthorized` if the request's credentials have ended, otherwise `timeout`. */
export function throwIfLeft({ signal, provider }: Pick<ChatCommand, 'signal' | 'provider'>): void {
  if (signal.reason instanceof Failure) throw signal.reason;
  if (signal.aborted) throw new Failure('timeout', { provider });
}

/** The end that operators see of a request that fails with this error. */
export function failureCodeOf({ signal }: Pick<ChatCommand, 'signal'>, error: unknown): RequestCode {
  if (signal.aborted) return 'cancelled';
  return error instanceof Failure ? error.code : 'internal';
}

/** The owner whose share this command's job counts against. */
export const jobOwnerOf = (
  { user, isLowPriority = false, storeOptions }: ChatCommand,
  provider: ProviderId,
): JobOwner => ({ provider, user, isAsync: isLowPriority || (storeOptions?.isAsync ?? false) });

/** How much the clocks of two machines may differ: past the deadline by one, the job may be running by the other. */
export const clockMarginMs = 5000;

/** A chat that a request may be attached to. */
export interface ClaimedChat {
  readonly id: string;
  /** Milliseconds since the epoch, as is `expiresAt`. */
  readonly deadline: number;
  /** When the records of a stored chat end; absent for one that is not stored. */
  readonly expiresAt?: number | undefined;
  /** The attempt that is under way, or is to be made. */
  readonly current: Attempt;
  /** The room for its answer; present when this process has stored the chat. */
  readonly answer?: Reservation | undefined;
}

/** The chat of a command: new, joined while it is under way, or ended already. */
export interface ResolvedChat {
  readonly chat: ClaimedChat;
  /** The records of a chat that the command joins; absent for a new one. */
  readonly result?: JobResult | undefined;
}

/** The facts that the first `POST` of a chat in this process decides. */
export interface ChatOpening {
  readonly command: ChatCommand;
  /** The share level of its user, which is the priority of its job. */
  readonly level: ShareLevel;
  /** Until when a streamed reply has to begin, in milliseconds since the epoch. */
  readonly startBy: number;
  /** When its request came, by the clock of `performance.now()`. */
  readonly receivedAt: number;
}

/** Who asks for a chat, and what for. */
export const originOf = (
  { user, asker, provider, model, stream, storeOptions }: ChatCommand,
  deadline: number,
): Origin => ({
  user,
  api: '',
  ...asker,
  provider,
  ...(model !== undefined && { model }),
  ...(stream && { stream: true }),
  ...(storeOptions && { stored: true }),
  deadline,
});

/** The job of a chat's attempt. */
export function toNewJob(
  { command, level, startBy }: ChatOpening,
  { id, deadline, expiresAt }: ClaimedChat,
  attempt: Attempt,
): NewJob {
  const { written, body, reasoning, isStrict, trace, stream } = command;
  return {
    ...attempt,
    ...jobOwnerOf(command, attempt.provider),
    chatId: attempt.attempt === undefined ? undefined : id,
    written,
    deadline,
    level,
    trace,
    origin: originOf(command, deadline),
    keptUntil: expiresAt,
    ...(body && { body }),
    ...(reasoning && { reasoning }),
    ...(isStrict && { isStrict }),
    ...(stream && { stream: true, firstDeltaBy: startBy }),
  };
}

/** The reply of the model, or that an asynchronous chat was accepted and is under way. */
export type ChatReply =
  | { readonly kind: 'completed'; readonly completion: Completion }
  | { readonly kind: 'accepted'; readonly id: string; readonly status: ChatStatus };
