import type { ProviderId, Target } from '../../shared/contract.js';
import { Failure } from '../../shared/failures.js';
import { type Attempt, jobIdOf } from '../../shared/protocol/attempts.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import { withTimeout } from '../../shared/runtime/with-timeout.js';
import { admit, type Deadlines, resolveDeadlines, type TimeLimits } from './admission.js';
import {
  type ChatCommand,
  type ChatReply,
  isStored,
  jobOwnerOf,
  type ResolvedChat,
  throwIfLeft,
  toNewJob,
} from './chat-command.js';
import { type ChatEnding, ChatEndings, type ChatHistory } from './chat-history.js';
import { statusOf, toCompletion } from './chat-result.js';
import { type Admission, clockMarginMs } from './idempotent-entry.js';
import type { JobClient } from './jobs/job-client.js';
import type { JobResult } from './jobs/job-results.js';
import type { PendingJob, PendingReplies } from './jobs/pending-replies.js';
import { ReplyStream } from './jobs/reply-stream.js';
import type { StoredChats } from './stored-chats.js';
import type { CountedJob, UserShares } from './user-shares.js';

type Client = Pick<
  JobClient,
  'pools' | 'check' | 'add' | 'read' | 'cancel' | 'cancelUnconfirmed' | 'openStream'
>;

interface ChatServiceDeps extends TimeLimits {
  /** Undefined until the queue's store has been reached. */
  jobClient: () => Client | undefined;
  pendingReplies: PendingReplies;
  shares: UserShares;
  storedChats: Pick<StoredChats, 'open' | 'cancelUnconfirmed'>;
  /** Whom to ask when a provider fails, for commands that do not say so; absent means nobody. */
  defaultFallback?: (provider: ProviderId) => readonly Target[];
  /** Where operators see what came and how it ended. */
  history?: ChatHistory;
  /** The clock of the deadlines, in milliseconds since the epoch: the store's. */
  now?: () => number;
}

/** A command's job, added or being added. */
interface SubmittedJob extends Pick<Deadlines, 'waitUntil' | 'startBy'> {
  readonly command: ChatCommand;
  readonly jobClient: Client;
  readonly chat: ResolvedChat['chat'];
  readonly job: PendingJob;
  readonly stream: ReplyStream | undefined;
  readonly counted: CountedJob;
  readonly ending: ChatEnding;
  /** Adds the job, once more if need be: a job whose id is there already is not added. */
  readonly add: () => Promise<void>;
  readonly added: Promise<void>;
}

/** Short: the caller's deadline has passed, and a healthy store answers in a few milliseconds. */
const finalReadMs = 25;
/** Has chats done by the workers: each becomes a job, whose reply is waited for here. */
export class ChatService {
  readonly #deps: ChatServiceDeps;
  readonly #now: () => number;
  readonly #endings: ChatEndings;

  constructor(deps: ChatServiceDeps) {
    this.#deps = deps;
    this.#endings = new ChatEndings(deps.history);
    this.#now = deps.now ?? Date.now;
  }

  /** The command's reply, at the latest when the caller stops waiting. Throws a `Failure` for everything expected. */
  async createChat(command: ChatCommand): Promise<ChatReply> {
    return this.#endings.watch(command, (ending) => this.#createChat(command, ending));
  }

  async #createChat(command: ChatCommand, ending: ChatEnding): Promise<ChatReply> {
    const jobClient = this.#deps.jobClient();
    if (jobClient === undefined) throw new Failure('queue_unavailable');
    const deadlines = resolveDeadlines(command, this.#deps, this.#now());
    const { chat, onAnswer, outcome } = await this.#resolveChat(command, {
      deadline: deadlines.deadline,
      admit: () => this.#admit(command, { jobClient, startBy: deadlines.startBy }),
    });
    command.storeOptions?.onResolved(chat.id, { isReplayed: outcome !== undefined });
    if (outcome) return replayTo(command, outcome, ending);
    ending.recordQueued(chat, onAnswer);
    const submitted = this.#addJob(command, { jobClient, chat, ending, ...deadlines });
    using stream = submitted.stream;
    const reply = this.#toReply(submitted, await this.#awaitResult(submitted));
    if (reply.kind === 'completed') await stream?.finish(reply.completion);
    return reply;
  }

  /** A new chat, once it was admitted, or the stored one that the command's key stands for. */
  async #resolveChat(command: ChatCommand, admission: Admission): Promise<ResolvedChat> {
    if (isStored(command)) return this.#deps.storedChats.open(command, admission);
    const current = await admission.admit();
    throwIfLeft(command);
    return { chat: { id: command.requestId, deadline: admission.deadline, current } };
  }

  #admit(
    command: ChatCommand,
    { jobClient, startBy }: Pick<SubmittedJob, 'jobClient' | 'startBy'>,
  ): Promise<Attempt> {
    const fallback = command.fallback ?? this.#deps.defaultFallback?.(command.provider);
    return admit(command, {
      jobClient,
      shares: this.#deps.shares,
      fallback,
      timeoutMs: startBy - this.#now(),
    });
  }

  /** Counts the job as outstanding, and begins to add it; a chat that is joined has it added again, should it have been lost. */
  #addJob(
    command: ChatCommand,
    { waitUntil, ...begun }: Pick<SubmittedJob, 'jobClient' | 'chat' | 'ending' | 'waitUntil' | 'startBy'>,
  ): SubmittedJob {
    const { jobClient, chat, startBy } = begun;
    const { user, signal } = command;
    const job = { ...chat.current, jobId: chat.id, isStored: isStored(command) };
    const isJoined = chat.id !== command.requestId;
    const stream = command.stream && jobClient.openStream(job, { ...command.stream, user, signal, isJoined });
    const counted = this.#deps.shares.add(job.jobId, jobOwnerOf(command, job.provider));
    const newJob = {
      ...toNewJob(command, chat),
      ...(command.stream && { stream: true, firstDeltaBy: startBy }),
    };
    const jobId = jobIdOf(chat.id, job.attempt);
    const add = () => jobClient.add(jobId, { ...newJob, level: counted.level });
    const submitted: SubmittedJob = {
      ...{ ...begun, command, job, stream, counted, add, added: add() },
      // A joined chat ends at its own deadline, which another process's clock has set.
      waitUntil: Math.min(waitUntil, chat.deadline + clockMarginMs),
    };
    submitted.added.catch(() => this.#cancelUnconfirmed(submitted));
    return submitted;
  }

  /** The store may still take the job although nobody waits for it; with a key, a repeated request may join it. */
  #cancelUnconfirmed({ command: { storeOptions }, jobClient, chat, job }: SubmittedJob): void {
    // After its deadline no worker makes a call for it.
    if (this.#now() >= chat.deadline) return;
    if (storeOptions === undefined) jobClient.cancelUnconfirmed(job);
    else if (storeOptions.key === undefined)
      this.#deps.storedChats.cancelUnconfirmed({ owner: storeOptions.owner, id: chat.id });
  }

  /** What has become of the job when its reply is there, or the caller stops waiting. */
  async #awaitResult(submitted: SubmittedJob): Promise<JobResult> {
    let isUnfinished = false;
    try {
      const outcome = await this.#awaitOutcome(submitted);
      const result = outcome ? ({ state: 'settled', outcome } as const) : await finalRead(submitted);
      isUnfinished = result.state !== 'settled';
      if (result.state === 'settled') submitted.ending.settle(result.outcome);
      return result;
    } catch (error) {
      const { command, jobClient, job, stream } = submitted;
      isUnfinished = command.signal.aborted || stream?.hasFailed === true;
      if (stream?.hasFailed && !isStored(command)) jobClient.cancel(job);
      throw error;
    } finally {
      this.#release(submitted, { isUnfinished });
    }
  }

  /** The outcome that the job's message brings; undefined when the caller stops waiting first. */
  async #awaitOutcome({
    command,
    jobClient,
    job,
    waitUntil,
    startBy,
    stream,
    add,
    added,
  }: SubmittedJob): Promise<Outcome | undefined> {
    const { signal, storeOptions } = command;
    const wait = this.#deps.pendingReplies.wait(job, waitUntil);
    if (signal.aborted) wait.leave();
    signal.addEventListener('abort', wait.leave);
    const leaveUnlessBegun = () => stream?.hasBegun || wait.leave();
    const timer = stream && setTimeout(leaveUnlessBegun, startBy - this.#now());
    try {
      const confirmed = added.then(() => wait.onLost(() => void add().catch(() => undefined)));
      // A refused add rejects at once; the deadline or a disconnect ends the wait for a slow one.
      const ends = [wait.outcome, confirmed.then(() => wait.outcome), ...(stream ? [stream.failed] : [])];
      const outcome = await Promise.race(ends);
      if (outcome !== undefined) return outcome;
      // A stream that has not begun in time may still have minutes to its deadline. A job that is cancelled before it is there would be
      // added after that.
      if ((signal.aborted || stream?.hasBegun === false) && !storeOptions)
        void added.then(
          () => jobClient.cancel(job),
          () => undefined,
        );
      throwIfLeft(command);
      // A chat is accepted once the queue has its job.
      if (storeOptions?.isAsync) await added;
      return undefined;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', wait.leave);
      wait.leave();
    }
  }

  /** Counts the job no longer, but for a stored chat that goes on without its request: that counts until it ends. */
  #release(
    { command, chat, job, added, counted, ending }: SubmittedJob,
    { isUnfinished }: { isUnfinished: boolean },
  ): void {
    const { pendingReplies } = this.#deps;
    if (isUnfinished && isStored(command)) {
      const ended = ending.follow(added.then(() => pendingReplies.waitInBackground(job, chat.deadline)));
      command.storeOptions.onDetached(ended);
      void ended.then(counted.release);
    } else {
      if (isUnfinished) ending.awaitCut(pendingReplies.waitForCut(job));
      counted.release();
    }
  }

  #toReply({ command, chat: { id, deadline } }: SubmittedJob, result: JobResult): ChatReply {
    const { storeOptions, waitMs, provider } = command;
    const isInTime = result.state === 'settled' && waitMs !== undefined;
    if (storeOptions?.isAsync && !isInTime)
      return { kind: 'accepted', id, status: statusOf(result, { deadline, now: this.#now() }) };
    return { kind: 'completed', completion: toCompletion(result, provider) };
  }
}

async function replayTo(
  { provider, stream, signal }: ChatCommand,
  outcome: Outcome,
  ending: ChatEnding,
): Promise<ChatReply> {
  ending.forget();
  const completion = toCompletion({ state: 'settled', outcome }, provider);
  if (stream) await ReplyStream.replay({ ...stream, signal }, completion);
  return { kind: 'completed', completion };
}

/** No message has brought an outcome in time: the records may have it, if they can be read at once. */
const finalRead = ({ jobClient, job }: SubmittedJob): Promise<JobResult> =>
  withTimeout(finalReadMs, jobClient.read(job)).catch(() => ({ state: 'unknown' }));
