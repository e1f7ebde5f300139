import type { PendingJob, PendingReplies } from './jobs/pending-replies.js';

/** The stored chats that go on without the requests that have left them. */
export interface DetachedChats {
  /**
   * Resolves when the chat has ended, or at its deadline; at once when the queue does not take its job, and for every
   * request but the first: it counts once, however many have left it.
   */
  leave(job: PendingJob, options: { deadline: number; adding: Promise<void> }): Promise<void>;
}

export function createDetachedChats(pendingReplies: Pick<PendingReplies, 'wait'>): DetachedChats {
  const jobIds = new Set<string>();
  const ended = async (job: PendingJob, deadline: number) => {
    if (jobIds.has(job.jobId)) return;
    jobIds.add(job.jobId);
    await pendingReplies.wait(job, deadline, { isBackground: true }).outcome;
    jobIds.delete(job.jobId);
  };
  return {
    leave: (job, { deadline, adding }) =>
      adding.then(
        () => ended(job, deadline),
        () => undefined,
      ),
  };
}
