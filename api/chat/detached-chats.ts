import type { PendingJob, PendingReplies } from './jobs/pending-replies.js';

/** The stored chats that go on without a request; each counts once, however many requests have left it. */
export class DetachedChats {
  readonly #pendingReplies: PendingReplies;
  readonly #jobIds = new Set<string>();

  constructor(pendingReplies: PendingReplies) {
    this.#pendingReplies = pendingReplies;
  }

  /**
   * Resolves when the chat has ended, at its deadline (milliseconds since the epoch) at the latest; at once when its job could not
   * be added, or another request has left the chat before.
   */
  async follow(
    job: PendingJob,
    { deadline, added }: { deadline: number; added: Promise<void> },
  ): Promise<void> {
    const isAdded = await added.then(
      () => true,
      () => false,
    );
    if (!isAdded || this.#jobIds.has(job.jobId)) return;
    this.#jobIds.add(job.jobId);
    await this.#pendingReplies.wait(job, deadline, { isBackground: true }).outcome;
    this.#jobIds.delete(job.jobId);
  }
}
