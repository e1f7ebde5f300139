import type { RequestCode } from '../../shared/contracts/ledger.js';
import type { Attempt } from '../../shared/protocol/attempts.js';
import { jobRecordTtlMs } from '../../shared/protocol/messages.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import type { PendingJob, PolledChat } from '../fleet-link/chat-receiver.js';
import type { ChatOpening, ClaimedChat } from './chat-command.js';
import type { ReplyStream } from './reply-stream.js';

/** A request that waits for the chat, or follows it in the background. */
export interface WaitingRequest {
  /** The part of the reply that the request reads while it is written. */
  readonly reader: ReplyStream | undefined;
  /** The name by which the worker knows the reader; that of the request that added the job needs none. */
  readonly readerName: string | undefined;
  readonly isInBackground: boolean;
  settle(outcome: Outcome): void;
  /** Stops its timers and no longer listens to its signal. */
  release(): void;
}

/** The record of a job that has ended still exists after this time: a little less than its lifetime. */
const recordAliveMs = jobRecordTtlMs - 10_000;

/** One chat that requests of this process wait for or read: its data, and its four transitions. */
export class LiveChat implements PolledChat {
  readonly claimed: ClaimedChat;
  readonly id: string;
  readonly isStored: boolean;
  readonly requests = new Set<WaitingRequest>();
  /** When its first request came, in milliseconds since the epoch. */
  readonly attachedAt: number;
  /** Which polls read it while it is only in the background. */
  readonly pollSlot: number;
  /** Undefined while the chat is only read here. Only an opened chat has events, and can be added again. */
  opening: ChatOpening | undefined;
  /** Why the last waiting request left before there was an outcome. For a stored chat it is set only on removal. */
  leftWith: RequestCode | undefined;
  isPassedOn = false;
  /** Its images and long texts are being stored, or have been; undefined without any. */
  storing: Promise<void> | undefined;
  /** The attempt that is under way, as far as it is known here. */
  attempt: Attempt;
  /** When the store last knew its job; undefined until its add is confirmed. */
  #seenAt: number | undefined;
  #mayBeAddedAgain = false;

  constructor(claimed: ClaimedChat, { attachedAt, pollSlot }: { attachedAt: number; pollSlot: number }) {
    this.claimed = claimed;
    this.id = claimed.id;
    this.isStored = claimed.expiresAt !== undefined;
    this.attachedAt = attachedAt;
    this.pollSlot = pollSlot;
    this.attempt = claimed.current;
  }

  get job(): PendingJob {
    return { ...this.attempt, jobId: this.id, isStored: this.isStored };
  }

  /** Whether the reply is read here as it is written. */
  get isStreamed(): boolean {
    return [...this.requests].some(({ reader, isInBackground }) => reader && !isInBackground);
  }

  get isRead(): boolean {
    return [...this.requests].some(({ reader, isInBackground }) => reader?.hasText && !isInBackground);
  }

  /** Whether no request waits for it any more, but this process still follows it. */
  get isInBackground(): boolean {
    return [...this.requests].every((request) => request.isInBackground);
  }

  /** The store confirmed at this time, in milliseconds since the epoch, that it has the added job. */
  added(at: number): void {
    this.#seenAt = at;
    this.#mayBeAddedAgain = true;
  }

  /** As `added`, for a poll that has found the job. A worker that runs it can be asked for what readers lack. */
  seen(at: number, { isRunning }: { isRunning: boolean }): void {
    this.#seenAt = at;
    if (isRunning) for (const { reader } of this.requests) reader?.askFirst();
  }

  /** False for news that is old: messages may come late and twice. */
  moved(next: Attempt): boolean {
    if ((next.attempt ?? 1) <= (this.attempt.attempt ?? 1)) return false;
    this.attempt = next;
    this.#seenAt = undefined;
    this.#mayBeAddedAgain = false;
    return true;
  }

  settled(outcome: Outcome): void {
    for (const request of this.requests) request.settle(outcome);
    this.requests.clear();
  }

  /** A request leaves; true when it was the last. */
  detached(request: WaitingRequest): boolean {
    request.release();
    return this.requests.delete(request) && this.requests.size === 0;
  }

  /**
   * Claims to add a job again that the store did not know at `askedAt`; true once for each request that adds it. False
   * if it was seen since, or so long ago that it may have ended and its record expired, or if all its requests have
   * left, which cancels it.
   */
  claimReAdd(askedAt: number, now: number): boolean {
    const seenAt = this.#seenAt ?? 0;
    if (this.leftWith !== undefined || !this.#mayBeAddedAgain) return false;
    if (seenAt <= now - recordAliveMs || seenAt > askedAt) return false;
    this.#mayBeAddedAgain = false;
    return true;
  }
}
