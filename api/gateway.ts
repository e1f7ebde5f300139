import type { ProviderId, Turn } from '../shared/contract.js';
import { Failure } from '../shared/failures.js';
import type { Outcome } from '../shared/outcome.js';
import { noModel } from './pool-view.js';
import type { QueueLink } from './queue-link.js';
import type { WaitingRoom } from './waiting-room.js';

/** A conversation for a provider. */
export interface Question {
  /** Becomes the job's id. */
  requestId: string;
  provider: ProviderId;
  /** The provider's own model name; absent means the provider's configured one. */
  model: string | undefined;
  turns: Turn[];
}

/** A finished (`ok`) reply or one cut at the token limit (`truncated`). */
export type Answer = Extract<Outcome, { text: string }>;

/** Turns questions into jobs and waits for what becomes of them. */
export interface Gateway {
  /** Throws a `Failure` for everything expected; settles at the deadline at the latest. */
  ask(question: Question): Promise<Answer>;
}

interface GatewayDeps {
  /** The channels to the workers, once the queue's store has been reached. */
  link: () => QueueLink | undefined;
  waitingRoom: WaitingRoom;
  /** How long a caller waits, in milliseconds. */
  timeoutMs: number;
}

export function createGateway({ link, waitingRoom, timeoutMs }: GatewayDeps): Gateway {
  return {
    ask: async (question) => {
      const deadline = Date.now() + timeoutMs;
      const open = link();
      if (open === undefined) throw new Failure('queue_unavailable');
      await admit(open, question, timeoutMs);
      const settled = open.pools.noteAdded(question.provider);
      try {
        const outcome = (await enqueue(open, question, deadline)) ?? (await lastLook(open, question));
        return toAnswer(outcome, question.provider);
      } finally {
        settled();
      }
    },
  };

  /** Adds the job and waits for its outcome; undefined when the deadline passes first. */
  async function enqueue(
    open: QueueLink,
    question: Question,
    deadline: number,
  ): Promise<Outcome | undefined> {
    const { requestId: jobId, provider, model, turns } = question;
    const outcome = waitingRoom.wait({ jobId, provider }, deadline);
    try {
      await open.add(jobId, { provider, turns, deadline, ...(model !== undefined && { model }) });
    } catch (cause) {
      waitingRoom.giveUp(jobId);
      throw new Failure('queue_unavailable', { cause });
    }
    return outcome;
  }
}

async function admit(link: QueueLink, { provider, model }: Question, patienceMs: number): Promise<void> {
  try {
    link.pools.admit(provider, { patienceMs, namesModel: model !== undefined });
  } catch (error) {
    // No beats arrive while the store is down either; that is another failure than a dead pool.
    if (error instanceof Failure && error.code === 'provider_unavailable') await link.check();
    throw error;
  }
}

const lastLookMs = 50;

/** The deadline has passed without a telling: the record may know better, if it answers at once. */
async function lastLook(link: QueueLink, { provider, requestId }: Question): Promise<Outcome | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), lastLookMs);
  const look = link.readOutcome(provider, requestId).catch(() => undefined);
  return Promise.race([look, promise]).finally(() => clearTimeout(timer));
}

function toAnswer(outcome: Outcome | undefined, provider: ProviderId): Answer {
  switch (outcome?.kind) {
    case undefined:
      throw new Failure('timeout', { provider });
    case 'ok':
    case 'truncated':
      return outcome;
    case 'blocked':
      throw new Failure('content_blocked', { provider });
    case 'failed': {
      const { code, retryable, retryAfterMs } = outcome;
      // The only thing a worker can find wrong with a request; usually the pool's beat has told before.
      if (code === 'invalid_request') throw noModel(provider);
      throw new Failure(code, {
        provider,
        retryable,
        ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      });
    }
  }
}
