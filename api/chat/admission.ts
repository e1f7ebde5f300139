import type { Target } from '../../shared/contracts/contract.js';
import { Failure, type FailureCode } from '../../shared/failures.js';
import { findUnsupported, ignoredHints } from '../../shared/models/provider-support.js';
import type { Attempt, EndedAttempt } from '../../shared/protocol/attempts.js';
import { withTimeout } from '../../shared/runtime/retry.js';
import type { FleetLink } from '../fleet-link/fleet-link.js';
import { orUnavailable } from '../fleet-link/job-records.js';
import { type ChatCommand, jobOwnerOf } from './chat-command.js';
import type { UserShares } from './user-shares.js';

/** Until when a chat has to happen, in milliseconds since the epoch. */
export interface Deadlines {
  readonly waitUntil: number;
  readonly deadline: number;
  /** Until when a reply that is read as it is written has to begin; for any other the deadline. */
  readonly startBy: number;
}

/** How long chats may take, in milliseconds. */
export interface TimeLimits {
  /** How long a caller of our own APIs waits who does not say so. */
  timeoutMs: number;
  /** How long the job of an asynchronous chat may take, and a client wait that says so. */
  maxMs: number;
  /** How long a stream may go on after the time by which it has to begin. */
  maxStreamMs: number;
}

/** The deadlines of a command that came at `now`; throws `timeout` when it is too late already. */
export function resolveDeadlines(
  command: ChatCommand,
  { timeoutMs, maxMs, maxStreamMs }: TimeLimits,
  now: number,
): Deadlines {
  const { storeOptions, stream, waitMs, clientTimeoutMs, elapsedMs = 0, provider } = command;
  const isAsync = storeOptions?.isAsync ?? false;
  // Clients of the APIs of others say how long they wait, which is their way to ask for it.
  const usualMs = command.timeoutMs === undefined ? timeoutMs : (clientTimeoutMs ?? command.timeoutMs);
  // Times in records are whole milliseconds.
  const startedAt = Math.round(now - elapsedMs);
  const ownMs = waitMs ?? (isAsync ? 0 : Math.min(usualMs, maxMs));
  const waitUntil = startedAt + Math.min(ownMs, clientTimeoutMs ?? Infinity);
  const startBy = isAsync ? startedAt + maxMs : waitUntil;
  if (startBy <= now) throw new Failure('timeout', { provider, neverCalled: true });
  // A caller who says how long to wait means the whole reply.
  if (stream === undefined || waitMs !== undefined) return { waitUntil, deadline: startBy, startBy };
  const deadline = startBy + maxStreamMs;
  return { waitUntil: deadline, deadline, startBy };
}

/**
 * How long a chat may wait for its turn, and be answered: until its deadline, and where its caller names no time, no
 * longer than its API lets it queue. Such a caller has a model in mind that thinks: a chat that queues for most of the
 * time would have none left for that.
 */
export const backlogMs = (
  { waitMs, storeOptions, queueMs }: ChatCommand,
  { startBy, now, timeoutMs }: { startBy: number; now: number; timeoutMs: number },
): number =>
  waitMs !== undefined || storeOptions?.isAsync
    ? startBy - now
    : Math.min(startBy - now, queueMs ?? timeoutMs);

interface AdmissionOptions {
  shares: Pick<UserShares, 'of' | 'nextLevel'>;
  link: Pick<FleetLink, 'pools' | 'check'>;
  timeoutMs: number;
  fallback?: readonly Target[] | undefined;
}

/**
 * The first attempt at a chat: at its provider, or at the first one of its fallback that would do it within
 * `timeoutMs`. A provider that operators have paused is taken only if no other one is left, and the chat waits there.
 * The attempt keeps those targets of the fallback that a live pool serves and that can be asked for the command's
 * parameters and conversation. Throws what `LivePools.admit` throws for the provider when none would do it, and
 * `queue_unavailable` when the store is down.
 */
export async function admit(command: ChatCommand, options: AdmissionOptions): Promise<Attempt> {
  const { pools } = options.link;
  const targets = targetsOf(command, options);
  const earlier: EndedAttempt[] = [];
  let paused: Attempt | undefined;
  let failure: unknown;
  for (const [n, target] of targets.entries()) {
    const refusal = await refusalOf(target, command, options);
    if (refusal === undefined) {
      const remaining = targets.slice(n + 1).filter((next) => pools.isServed(next));
      const attempt = { ...target, fallback: unlessEmpty(remaining), earlier: unlessEmpty(earlier) };
      if (!pools.isPaused(target)) return attempt;
      paused ??= attempt;
    }
    failure ??= refusal;
    // Another provider would refuse a wrong request too.
    if (n === 0 && refusal && !isPassing(refusal)) break;
    // Without a refusal its model has passed the check, and operators have paused it.
    earlier.push(toEnded(target, refusal ?? new Failure('provider_unavailable', { model: target.model })));
  }
  if (paused) return paused;
  throw failure;
}

const unlessEmpty = <T>(list: readonly T[]): T[] | undefined => (list.length > 0 ? [...list] : undefined);

/** The targets to ask, in this order, each model once: retries are the worker's task, and have a budget. */
function targetsOf(
  { provider, model, unfitFor, parameters = {}, isStrict }: ChatCommand,
  { link: { pools }, fallback = [] }: AdmissionOptions,
): Target[] {
  const able = fallback.filter(
    (target) =>
      findUnsupported(target.provider, parameters) === undefined &&
      !unfitFor.includes(target.provider) &&
      !(isStrict && ignoredHints(target.provider, parameters).length > 0),
  );
  const targets = [{ provider, model }, ...able];
  const byModel = Map.groupBy(targets, (target) => `${target.provider}/${pools.modelOf(target)}`);
  return [...byModel.values()].flatMap(([first]) => first ?? []);
}

const isPassing = (refusal: Failure): boolean =>
  ['provider_unavailable', 'provider_rate_limited', 'overloaded'].includes(refusal.code);

/** Refusals that come after the check of models; before it, a name may be anything that a caller sent. */
export const afterCheck: ReadonlySet<string> = new Set<FailureCode>(['overloaded', 'provider_rate_limited']);

function toEnded({ provider, model: asked }: Target, { code, retryable, facts }: Failure): EndedAttempt {
  const { retryAfterMs, model = afterCheck.has(code) ? asked : undefined } = facts;
  return { provider, code, retryable, retryAfterMs, model };
}

/** Why the chat is not admitted there; undefined when it is. */
async function refusalOf(
  { provider, model }: Target,
  command: ChatCommand,
  { link, shares, timeoutMs }: AdmissionOptions,
): Promise<Failure | undefined> {
  try {
    const owner = jobOwnerOf(command, provider);
    const own = shares.of(provider);
    const level = shares.nextLevel(owner, command.jobClass);
    link.pools.admit(owner, { timeoutMs, model, isStream: command.stream !== undefined, own, level });
    return undefined;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // Heartbeats do not arrive while the store is down either, which is another failure than a dead pool.
    if (error.code === 'provider_unavailable') await orUnavailable(withTimeout(timeoutMs, link.check()));
    return error;
  }
}
