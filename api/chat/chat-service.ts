import { Failure } from '../../shared/failures.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import { withTimeout } from '../../shared/runtime/with-timeout.js';
import { admit } from './admission.js';
import {
  type Attempt,
  type ChatCommand,
  isStored,
  jobOwnerOf,
  type Reply,
  type ResolvedChat,
  type RunningAttempt,
} from './chat-command.js';
import { replay, statusOf, toCompletion } from './chat-result.js';
import { createDetachedChats } from './detached-chats.js';
import { clockMarginMs, type Entry } from './idempotent-entry.js';
import type { JobClient, NewJob } from './jobs/job-client.js';
import type { JobResult } from './jobs/job-results.js';
import type { PendingJob, PendingReplies } from './jobs/pending-replies.js';
import { createRefCounts } from './jobs/ref-count.js';
import type { CountedJob } from './pools/outstanding-jobs.js';
import type { StoredChats } from './stored-chats.js';

/** Turns questions into jobs and waits for what becomes of them. */
export interface ChatService {
  /** Throws a `Failure` for everything expected; settles when the caller's patience ends at the latest. */
  createChat(command: ChatCommand): Promise<Reply>;
}

interface ChatServiceDeps {
  /** The channels to the workers, once the queue's store has been reached. */
  link: () => JobClient | undefined;
  pendingReplies: PendingReplies;
  storedChats: StoredChats;
  /** How long a caller waits who does not say, in milliseconds. */
  timeoutMs: number;
  /** How long the job may take of a caller who does not wait, in milliseconds. */
  maxMs: number;
  /** The clock of the deadlines, in milliseconds since the epoch: the store's. */
  now?: () => number;
}

export function createChatService(deps: ChatServiceDeps): ChatService {
  const { link, pendingReplies, storedChats, timeoutMs, maxMs, now = Date.now } = deps;
  const detachedChats = createDetachedChats(pendingReplies);
  const counted = createRefCounts<CountedJob>();
  return {
    createChat: async (command) => {
      const { storeOptions, waitMs, provider } = command;
      const open = link();
      if (open === undefined) throw new Failure('queue_unavailable');
      const { waitUntil, deadline } = timesOf(command);
      const entry: Entry = { deadline, admit: () => admit(open, command, deadline - now()) };
      const opened = isStored(command) ? await storedChats.open(command, entry) : await enter(command, entry);
      storeOptions?.onResolved(opened.chat.id);
      if (opened.outcome)
        return { kind: 'answered', answer: replay(opened.outcome, provider), isReplayed: true };
      // After the chat's own deadline there is nothing to wait for, but that was set by another clock.
      const task = { ...opened, waitUntil: Math.min(waitUntil, opened.chat.deadline + clockMarginMs) };
      const record = await carryOut(open, command, task);
      const isInTime = record.state === 'settled' && waitMs !== undefined;
      if (storeOptions?.isAsync && !isInTime) return accepted(record, task, now());
      return { kind: 'answered', answer: toCompletion(record, provider), isReplayed: false };
    },
  };

  /** Until when the caller waits and the job may take, in milliseconds since the epoch; throws `timeout` when that is over. */
  function timesOf({ storeOptions, waitMs, elapsedMs = 0, provider }: ChatCommand) {
    // Times in records are whole milliseconds.
    const askedAt = Math.round(now() - elapsedMs);
    const waitUntil = askedAt + (waitMs ?? (storeOptions?.isAsync ? 0 : timeoutMs));
    const deadline = storeOptions?.isAsync ? askedAt + maxMs : waitUntil;
    if (deadline <= now()) throw new Failure('timeout', { provider });
    return { waitUntil, deadline };
  }

  /** Has the job done and waits for its outcome, as long as the caller does. */
  async function carryOut(open: JobClient, command: ChatCommand, task: Attempt): Promise<JobResult> {
    const { chat } = task;
    const job = { jobId: chat.id, provider: command.provider, isStored: isStored(command) };
    const counting = counted(job.jobId, () => open.pools.recordAdded(jobOwnerOf(command)));
    const add = () => open.add(job.jobId, { ...jobOf(command, chat), level: counting.level });
    const adding = add();
    adding.catch(() => {
      // After its deadline nobody makes a call for it.
      if (now() < chat.deadline) cancelRefused(open, command, job);
    });
    let goesOn = false;
    try {
      const outcome = await outcomeOf(open, command, { ...task, job, add, adding });
      const record = outcome ? ({ state: 'settled', outcome } as const) : await finalRead(open, job);
      goesOn = record.state !== 'settled';
      return record;
    } catch (error) {
      goesOn = command.gone.aborted;
      throw error;
    } finally {
      if (goesOn && isStored(command)) {
        const ended = detachedChats.leave(job, { deadline: chat.deadline, adding });
        command.storeOptions.onDetached(ended);
        void ended.then(counting.release);
      } else counting.release();
    }
  }

  /** The store may have taken the job all the same, or take it later: nobody is waiting for it, unless the key is sent again. */
  function cancelRefused(open: JobClient, { storeOptions }: ChatCommand, job: PendingJob): void {
    if (storeOptions === undefined) open.cancelUnconfirmed(job);
    else if (storeOptions.key === undefined)
      storedChats.abandon({ owner: storeOptions.owner, id: job.jobId });
  }

  /** Waits for the outcome of a job that is being added; undefined when the caller stops waiting first. */
  async function outcomeOf(
    open: JobClient,
    command: ChatCommand,
    doing: RunningAttempt,
  ): Promise<Outcome | undefined> {
    const { job, waitUntil, add, adding } = doing;
    const { gone, storeOptions } = command;
    const waiting = pendingReplies.wait(job, waitUntil);
    if (gone.aborted) waiting.leave();
    gone.addEventListener('abort', waiting.leave);
    try {
      const added = adding.then(() => waiting.onLost(() => void add().catch(() => undefined)));
      // The deadline, or the caller's going, also ends the wait for a store that is slow to take the job.
      const outcome = await Promise.race([waiting.outcome, added.then(() => waiting.outcome)]);
      if (outcome !== undefined) return outcome;
      // Only now is there something to take back.
      if (gone.aborted && !storeOptions)
        void adding.then(
          () => open.cancel(job),
          () => undefined,
        );
      throwIfAborted(command);
      // What is not in the queue is not accepted.
      if (storeOptions?.isAsync) await adding;
      return undefined;
    } finally {
      gone.removeEventListener('abort', waiting.leave);
      waiting.leave();
    }
  }
}

/** A chat that is not kept ends with its request. */
async function enter(command: ChatCommand, { deadline, admit }: Entry): Promise<ResolvedChat> {
  await admit();
  throwIfAborted(command);
  return { chat: { id: command.requestId, deadline }, isNew: true };
}

const accepted = (record: JobResult, { chat: { id, deadline } }: Attempt, now: number): Reply => ({
  kind: 'accepted',
  id,
  status: statusOf(record, { deadline, now }),
});

/** What becomes of a request whose caller has gone is read by nobody. */
function throwIfAborted({ gone, provider }: ChatCommand): void {
  if (gone.aborted) throw new Failure('timeout', { provider });
}

/** A store that is well answers in a few milliseconds; the caller's deadline has passed already. */
const finalReadMs = 25;

/** Nobody has told of an outcome in time: the records may know better, if they answer at once. */
const finalRead = (link: JobClient, job: PendingJob): Promise<JobResult> =>
  withTimeout(finalReadMs, link.read(job)).catch(() => ({ state: 'unknown' }));

function jobOf(
  { provider, model, turns, storeOptions }: ChatCommand,
  { deadline, keptUntil }: ResolvedChat['chat'],
): Omit<NewJob, 'level'> {
  const optional = { ...(model !== undefined && { model }), ...(keptUntil !== undefined && { keptUntil }) };
  return { provider, turns, deadline, isAsync: storeOptions?.isAsync ?? false, ...optional };
}
