import type { Attempt } from '../../shared/protocol/attempts.js';
import type { Origin } from '../../shared/protocol/entries.js';
import type { WrittenJob } from '../../shared/protocol/messages.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import type { Delta } from '../../shared/protocol/parts.js';
import type { ShareLevel } from '../../shared/queue/add-attempt.js';
import type { TraceSpan } from '../../shared/runtime/tracing.js';

/** The owner of the chats in this process. It ignores results of other chats. */
export interface ChatReceiver {
  find(id: string): PolledChat | undefined;
  due(poll: Poll): PolledChat[];
  /** An outcome with a `next` is a move. */
  onOutcome(id: string, outcome: Outcome): void;
  onMoved(id: string, next: Attempt): void;
  onDelta(delta: Delta): void;
  /** The store did not know the job at `askedAt`; true when it is added again. */
  onLost(id: string, askedAt: number): boolean;
}

/** A chat that is waited for in this process, as the queue's side sees it. */
export interface PolledChat {
  readonly id: string;
  readonly job: PendingJob;
  /** Whether any reader here has got a part of the reply. */
  readonly isRead: boolean;
  /** Whether this process is passing it on: no job of it may be in the store then. */
  isPassedOn: boolean;
  /** A poll has found its job, which it asked for at this time, in milliseconds since the epoch. */
  seen(at: number, facts: { isRunning: boolean }): void;
}

/** Which chats a poll is for. */
export interface Poll {
  /** Only chats that came before this time, in milliseconds since the epoch. */
  readonly attachedBefore: number;
  /** Counts the polls: chats in the background come up less often. */
  readonly slot: number;
}

/**
 * A job without what the link adds, and its turn: its user's share level, and whether it is asynchronous and so done
 * after all that are not. With the trace that it is a part of, if there is one.
 */
export type NewJob = Omit<WrittenJob, 'v' | 'replyTo' | 'traceparent'> & {
  readonly trace?: TraceSpan | undefined;
  readonly isAsync?: boolean;
  readonly level?: ShareLevel;
  /** Who asks, and what for. */
  readonly origin: Origin;
};

/** The job of a chat's current attempt, as far as that is known. */
export interface PendingJob extends Pick<Attempt, 'provider' | 'model' | 'attempt' | 'fallback'> {
  /** Id of the chat, and of its first job. */
  readonly jobId: string;
  /** Whether it belongs to a stored chat, whose outcome has a record of its own. */
  readonly isStored?: boolean;
}

/** The state of a job in the records: `unknown` when there is none, because it was never added or has expired. */
export type JobResult =
  | { readonly state: 'running' | 'unknown' }
  /** `wasTaken`: a worker has taken it, or an earlier attempt at the chat, before. */
  | { readonly state: 'queued'; readonly wasTaken?: true }
  | { readonly state: 'settled'; readonly outcome: Outcome; readonly settledAt?: number };
