import type { AwaitedJob, WaitingRoom } from './jobs/pending-replies.js';

/** The kept chats that go on without the requests that have left them. */
export interface LeftChats {
  /**
   * Resolves when the chat has ended, or at its deadline; at once when the queue does not take its job, and for every
   * request but the first: it counts once, however many have left it.
   */
  leave(job: AwaitedJob, options: { deadline: number; adding: Promise<void> }): Promise<void>;
}

export function createLeftChats(waitingRoom: Pick<WaitingRoom, 'wait'>): LeftChats {
  const jobIds = new Set<string>();
  const ended = async (job: AwaitedJob, deadline: number) => {
    if (jobIds.has(job.jobId)) return;
    jobIds.add(job.jobId);
    await waitingRoom.wait(job, deadline, { isPatient: true }).outcome;
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
