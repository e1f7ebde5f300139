import { Failure } from '../../shared/failures.js';
import { withTimeout } from '../../shared/runtime/with-timeout.js';
import { type ChatCommand, jobOwnerOf } from './chat-command.js';
import type { JobClient } from './jobs/job-client.js';

/**
 * Throws what `PoolRegistry.admit` throws when a new job would not be done within `timeoutMs`, and
 * `queue_unavailable` when it is the store that is down.
 */
export async function admit(link: JobClient, command: ChatCommand, timeoutMs: number): Promise<void> {
  try {
    link.pools.admit(jobOwnerOf(command), { timeoutMs, model: command.model });
  } catch (error) {
    // No heartbeats arrive while the store is down either; that is another failure than a dead pool.
    if (error instanceof Failure && error.code === 'provider_unavailable') await checkWithin(timeoutMs, link);
    throw error;
  }
}

async function checkWithin(timeoutMs: number, link: JobClient): Promise<void> {
  await withTimeout(timeoutMs, link.check()).catch((cause) => {
    throw cause instanceof Failure ? cause : new Failure('queue_unavailable', { cause });
  });
}
