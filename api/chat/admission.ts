import { Failure } from '../../shared/failures.js';
import { within } from '../../shared/runtime/with-timeout.js';
import { ownerOf, type Question } from './chat-command.js';
import type { QueueLink } from './jobs/job-client.js';

/**
 * Throws what `PoolView.admit` throws when a new job would not be done within `patienceMs`, and
 * `queue_unavailable` when it is the store that is down.
 */
export async function admit(link: QueueLink, question: Question, patienceMs: number): Promise<void> {
  try {
    link.pools.admit(ownerOf(question), { patienceMs, model: question.model });
  } catch (error) {
    // No beats arrive while the store is down either; that is another failure than a dead pool.
    if (error instanceof Failure && error.code === 'provider_unavailable')
      await checkWithin(patienceMs, link);
    throw error;
  }
}

async function checkWithin(patienceMs: number, link: QueueLink): Promise<void> {
  await within(patienceMs, link.check()).catch((cause) => {
    throw cause instanceof Failure ? cause : new Failure('queue_unavailable', { cause });
  });
}
