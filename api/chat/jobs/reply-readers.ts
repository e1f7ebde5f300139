import { randomUUID } from 'node:crypto';
import { Failure } from '../../../shared/failures.js';
import type { Delta, Resend } from '../../../shared/protocol/deltas.js';
import { Tally } from '../../../shared/runtime/tally.js';
import type { PendingJob } from './pending-replies.js';
import { ReplyStream, type ReplyStreamOptions, resendLength } from './reply-stream.js';

/** One reader of a reply that is being written. */
export type ReplyReader = Omit<ReplyStreamOptions, 'requestResend' | 'onDispose'> & {
  /** Id of the user. */
  user: string;
};

type Ask = (job: PendingJob, asked: Pick<Resend, 'reader' | 'from' | 'max' | 'left'>) => void;

/** A user may join this many streams of stored chats at once in this process. */
const maxJoined = 20;
const tooManyReaders = { detail: 'This user reads too many stored chats at once.', retryAfterMs: 1000 };

/** The replies that are read in this process as they are written. */
export class ReplyReaders {
  readonly #ask: Ask;
  /** By job, and by the name of the reader. */
  readonly #streams = new Map<string, Map<string | undefined, ReplyStream>>();
  readonly #joined = new Tally();

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  /**
   * Writes the job's reply to the sink as it arrives. Dispose of the result when its reader has gone. Throws
   * `rate_limited` when the user has joined too many streams: each one that has not begun asks all workers of the
   * provider once a second.
   */
  open(job: PendingJob, { user, ...options }: ReplyReader): ReplyStream {
    const { jobId, isStored } = job;
    // The reader that adds the job needs no name of its own.
    const reader = options.isJoined ? randomUUID().slice(0, 8) : undefined;
    if (options.isJoined) this.#join(user);
    const streams = this.#streams.get(jobId) ?? new Map<string | undefined, ReplyStream>();
    this.#streams.set(jobId, streams);
    const stream = new ReplyStream({
      ...options,
      requestResend: (from) => this.#ask(job, { reader, from, max: resendLength }),
      onDispose: ({ isFinished }) => {
        if (options.isJoined) this.#joined.add(user, -1);
        streams.delete(reader);
        if (streams.size === 0) this.#streams.delete(jobId);
        // The chat goes on without its reader.
        if (isStored && !isFinished) this.#ask(job, { reader, from: 0, max: 1, left: true });
      },
    });
    streams.set(reader, stream);
    return stream;
  }

  get jobIds(): string[] {
    return [...this.#streams.keys()];
  }

  /** Whether any reader has got a part of the job's text. */
  haveRead(jobId: string): boolean {
    return [...(this.#streams.get(jobId)?.values() ?? [])].some(({ hasText }) => hasText);
  }

  receive(delta: Delta): void {
    this.#streams.get(delta.jobId)?.get(delta.reader)?.receive(delta);
  }

  #join(user: string): void {
    if (this.#joined.of(user) >= maxJoined) throw new Failure('rate_limited', tooManyReaders);
    this.#joined.add(user, 1);
  }
}
