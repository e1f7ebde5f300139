import { Failure } from '../../shared/failures.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import { within } from '../../shared/runtime/with-timeout.js';
import { admit } from './admission.js';
import {
  isKept,
  type OpenedChat,
  ownerOf,
  type Question,
  type Reply,
  type Task,
  type TaskUnderWay,
} from './chat-command.js';
import { replay, statusOf, toAnswer } from './chat-result.js';
import { createLeftChats } from './detached-chats.js';
import { clockMarginMs, type Entry } from './idempotent-entry.js';
import type { NewJob, QueueLink } from './jobs/job-client.js';
import type { JobRecord } from './jobs/job-results.js';
import type { AwaitedJob, WaitingRoom } from './jobs/pending-replies.js';
import { createSharedCounts } from './jobs/ref-count.js';
import type { CountedJob } from './pools/outstanding-jobs.js';
import type { KeptChats } from './stored-chats.js';

/** Turns questions into jobs and waits for what becomes of them. */
export interface Gateway {
  /** Throws a `Failure` for everything expected; settles when the caller's patience ends at the latest. */
  ask(question: Question): Promise<Reply>;
}

interface GatewayDeps {
  /** The channels to the workers, once the queue's store has been reached. */
  link: () => QueueLink | undefined;
  waitingRoom: WaitingRoom;
  keptChats: KeptChats;
  /** How long a caller waits who does not say, in milliseconds. */
  timeoutMs: number;
  /** How long the job may take of a caller who does not wait, in milliseconds. */
  longestMs: number;
  /** The clock of the deadlines, in milliseconds since the epoch: the store's. */
  now?: () => number;
}

export function createGateway(deps: GatewayDeps): Gateway {
  const { link, waitingRoom, keptChats, timeoutMs, longestMs, now = Date.now } = deps;
  const leftChats = createLeftChats(waitingRoom);
  const counted = createSharedCounts<CountedJob>();
  return {
    ask: async (question) => {
      const { keeping, patienceMs, provider } = question;
      const open = link();
      if (open === undefined) throw new Failure('queue_unavailable');
      const { heldUntil, deadline } = timesOf(question);
      const entry: Entry = { deadline, admit: () => admit(open, question, deadline - now()) };
      const opened = isKept(question) ? await keptChats.open(question, entry) : await enter(question, entry);
      keeping?.onOpened(opened.chat.id);
      if (opened.outcome)
        return { kind: 'answered', answer: replay(opened.outcome, provider), isReplayed: true };
      // After the chat's own deadline there is nothing to wait for, but that was set by another clock.
      const task = { ...opened, heldUntil: Math.min(heldUntil, opened.chat.deadline + clockMarginMs) };
      const record = await carryOut(open, question, task);
      const isInTime = record.state === 'settled' && patienceMs !== undefined;
      if (keeping?.isAsync && !isInTime) return accepted(record, task, now());
      return { kind: 'answered', answer: toAnswer(record, provider), isReplayed: false };
    },
  };

  /** Until when the caller waits and the job may take, in milliseconds since the epoch; throws `timeout` when that is over. */
  function timesOf({ keeping, patienceMs, elapsedMs = 0, provider }: Question) {
    // Times in records are whole milliseconds.
    const askedAt = Math.round(now() - elapsedMs);
    const heldUntil = askedAt + (patienceMs ?? (keeping?.isAsync ? 0 : timeoutMs));
    const deadline = keeping?.isAsync ? askedAt + longestMs : heldUntil;
    if (deadline <= now()) throw new Failure('timeout', { provider });
    return { heldUntil, deadline };
  }

  /** Has the job done and waits for its outcome, as long as the caller does. */
  async function carryOut(open: QueueLink, question: Question, task: Task): Promise<JobRecord> {
    const { chat } = task;
    const job = { jobId: chat.id, provider: question.provider, isKept: isKept(question) };
    const counting = counted(job.jobId, () => open.pools.noteAdded(ownerOf(question)));
    const add = () => open.add(job.jobId, { ...jobOf(question, chat), level: counting.level });
    const adding = add();
    adding.catch(() => {
      // After its deadline nobody makes a call for it.
      if (now() < chat.deadline) takeBackRefused(open, question, job);
    });
    let goesOn = false;
    try {
      const outcome = await outcomeOf(open, question, { ...task, job, add, adding });
      const record = outcome ? ({ state: 'settled', outcome } as const) : await lastLook(open, job);
      goesOn = record.state !== 'settled';
      return record;
    } catch (error) {
      goesOn = question.gone.aborted;
      throw error;
    } finally {
      if (goesOn && isKept(question)) {
        const ended = leftChats.leave(job, { deadline: chat.deadline, adding });
        question.keeping.onGoingOn(ended);
        void ended.then(counting.release);
      } else counting.release();
    }
  }

  /** The store may have taken the job all the same, or take it later: nobody is waiting for it, unless the key is sent again. */
  function takeBackRefused(open: QueueLink, { keeping }: Question, job: AwaitedJob): void {
    if (keeping === undefined) open.callOffRefused(job);
    else if (keeping.key === undefined) keptChats.abandon({ owner: keeping.owner, id: job.jobId });
  }

  /** Waits for the outcome of a job that is being added; undefined when the caller stops waiting first. */
  async function outcomeOf(
    open: QueueLink,
    question: Question,
    doing: TaskUnderWay,
  ): Promise<Outcome | undefined> {
    const { job, heldUntil, add, adding } = doing;
    const { gone, keeping } = question;
    const waiting = waitingRoom.wait(job, heldUntil);
    if (gone.aborted) waiting.leave();
    gone.addEventListener('abort', waiting.leave);
    try {
      const added = adding.then(() => waiting.onVanished(() => void add().catch(() => undefined)));
      // The deadline, or the caller's going, also ends the wait for a store that is slow to take the job.
      const outcome = await Promise.race([waiting.outcome, added.then(() => waiting.outcome)]);
      if (outcome !== undefined) return outcome;
      // Only now is there something to take back.
      if (gone.aborted && !keeping)
        void adding.then(
          () => open.cancel(job),
          () => undefined,
        );
      refuseIfGone(question);
      // What is not in the queue is not accepted.
      if (keeping?.isAsync) await adding;
      return undefined;
    } finally {
      gone.removeEventListener('abort', waiting.leave);
      waiting.leave();
    }
  }
}

/** A chat that is not kept ends with its request. */
async function enter(question: Question, { deadline, admit }: Entry): Promise<OpenedChat> {
  await admit();
  refuseIfGone(question);
  return { chat: { id: question.requestId, deadline }, isNew: true };
}

const accepted = (record: JobRecord, { chat: { id, deadline } }: Task, now: number): Reply => ({
  kind: 'accepted',
  id,
  status: statusOf(record, { deadline, now }),
});

/** What becomes of a request whose caller has gone is read by nobody. */
function refuseIfGone({ gone, provider }: Question): void {
  if (gone.aborted) throw new Failure('timeout', { provider });
}

/** A store that is well answers in a few milliseconds; the caller's deadline has passed already. */
const lastLookMs = 25;

/** Nobody has told of an outcome in time: the records may know better, if they answer at once. */
const lastLook = (link: QueueLink, job: AwaitedJob): Promise<JobRecord> =>
  within(lastLookMs, link.read(job)).catch(() => ({ state: 'unknown' }));

function jobOf(
  { provider, model, turns, keeping }: Question,
  { deadline, keptUntil }: OpenedChat['chat'],
): Omit<NewJob, 'level'> {
  const optional = { ...(model !== undefined && { model }), ...(keptUntil !== undefined && { keptUntil }) };
  return { provider, turns, deadline, isAsync: keeping?.isAsync ?? false, ...optional };
}
