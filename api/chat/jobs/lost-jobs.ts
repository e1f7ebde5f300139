import type { Attempt } from '../../../shared/protocol/attempts.js';
import { chatKey, currentOf, decodeStoredChat } from '../../../shared/protocol/stored-chat.js';
import type { RecordStore } from '../../../shared/queue/queue-store.js';
import type { Log } from '../../../shared/runtime/log.js';
import type { PendingJob, PendingReplies } from './pending-replies.js';

interface LostJobsDeps {
  records: Pick<RecordStore, 'readAll'>;
  pendingReplies: Pick<PendingReplies, 'find' | 'markLost' | 'moveOn'>;
  /** Whether this process is passing the chat on: its job is gone before the next one is there. */
  isPassingOn: (jobId: string) => boolean;
  log: Log;
}

const batch = 250;

/** Another process may have passed the chat on: then it runs under another id. */
const mayHaveMoved = ({ isStored, fallback = [] }: PendingJob): boolean =>
  isStored === true && fallback.length > 0;

/** Decides what becomes of jobs that somebody waits for and the store does not know. */
export class LostJobs {
  readonly #deps: LostJobsDeps;
  /** Chats whose jobs were missing once: whoever passes a chat on removes its job before it records the next attempt. */
  readonly #missing = new Set<string>();

  constructor(deps: LostJobsDeps) {
    this.#deps = deps;
  }

  /**
   * Has those added again that the store did not know when asked at `askedAt`, as in `PendingReplies.markLost`; those who wait for a
   * stored chat that was passed on wait for its next attempt instead. Never throws.
   */
  async report(jobs: readonly PendingJob[], askedAt: number): Promise<void> {
    const { pendingReplies, isPassingOn, log } = this.#deps;
    for (const jobId of this.#missing) if (!pendingReplies.find(jobId)) this.#missing.delete(jobId);
    const missing = jobs.filter(({ jobId }) => !isPassingOn(jobId));
    const lost = missing.filter((job) => !mayHaveMoved(job));
    const others = missing.filter(mayHaveMoved);
    for (let start = 0; start < others.length; start += batch)
      lost.push(...(await this.#findLost(others.slice(start, start + batch))));
    for (const { jobId } of lost)
      if (pendingReplies.markLost(jobId, askedAt)) log.warn({ jobId }, 'lost job added again');
  }

  async #findLost(jobs: readonly PendingJob[]): Promise<PendingJob[]> {
    try {
      const texts = await this.#deps.records.readAll(jobs.map(({ jobId }) => chatKey(jobId)));
      const current = texts.map((text) =>
        text === undefined ? undefined : currentOf(decodeStoredChat(text)),
      );
      return jobs.filter((job, n) => this.#isLost(job, current[n]));
    } catch (err) {
      this.#deps.log.debug({ err }, 'records of stored chats could not be read');
      return [];
    }
  }

  #isLost({ jobId, attempt = 1 }: PendingJob, current: Attempt | undefined): boolean {
    if (current && (current.attempt ?? 1) > attempt) {
      this.#deps.pendingReplies.moveOn(jobId, current);
      return false;
    }
    if (this.#missing.delete(jobId)) return true;
    this.#missing.add(jobId);
    return false;
  }
}
