import { Failure } from '../../shared/failures.js';
import { withTimeout } from '../../shared/runtime/with-timeout.js';
import { type ChatCommand, jobOwnerOf } from './chat-command.js';
import type { JobClient } from './jobs/job-client.js';

/** Until when a chat has to happen, in milliseconds since the epoch. */
export interface Deadlines {
  /** Until when the caller waits. */
  readonly waitUntil: number;
  /** Until when the job may take. */
  readonly deadline: number;
  /** Until when a reply that is read as it is written has to begin; for any other the deadline. */
  readonly startBy: number;
}

/** How long chats may take, in milliseconds. */
export interface TimeLimits {
  /** How long a caller waits that does not say so. */
  timeoutMs: number;
  /** How long the job of an asynchronous chat may take. */
  maxMs: number;
  /** How long a stream may go on after the time by which it has to begin. */
  maxStreamMs: number;
}

/** The deadlines of a command that came at `now`; throws `timeout` when it is too late already. */
export function resolveDeadlines(
  { storeOptions, stream, waitMs, clientTimeoutMs = Infinity, elapsedMs = 0, provider }: ChatCommand,
  { timeoutMs, maxMs, maxStreamMs }: TimeLimits,
  now: number,
): Deadlines {
  const isAsync = storeOptions?.isAsync ?? false;
  // Times in records are whole milliseconds.
  const startedAt = Math.round(now - elapsedMs);
  const waitUntil = startedAt + Math.min(waitMs ?? (isAsync ? 0 : timeoutMs), clientTimeoutMs);
  const startBy = isAsync ? startedAt + maxMs : waitUntil;
  if (startBy <= now) throw new Failure('timeout', { provider });
  // A caller who says how long to wait means the whole reply.
  if (stream === undefined || waitMs !== undefined) return { waitUntil, deadline: startBy, startBy };
  const deadline = startBy + maxStreamMs;
  return { waitUntil: deadline, deadline, startBy };
}

/**
 * Throws what `PoolRegistry.admit` throws for a chat that no pool would do within `timeoutMs`, and `queue_unavailable` when it is
 * the store that is down.
 */
export async function admit(
  command: ChatCommand,
  { jobClient, timeoutMs }: { jobClient: Pick<JobClient, 'pools' | 'check'>; timeoutMs: number },
): Promise<void> {
  try {
    jobClient.pools.admit(jobOwnerOf(command), {
      timeoutMs,
      model: command.model,
      isStream: command.stream !== undefined,
    });
  } catch (error) {
    // Heartbeats do not arrive while the store is down either, which is another failure than a dead pool.
    if (error instanceof Failure && error.code === 'provider_unavailable')
      await withTimeout(timeoutMs, jobClient.check()).catch((cause) => {
        throw cause instanceof Failure ? cause : new Failure('queue_unavailable', { cause });
      });
    throw error;
  }
}
