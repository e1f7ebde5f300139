import type { FleetBreaker, FleetError, FleetWorker } from '../contracts/fleet-contract.js';
import type { PoolHeartbeat } from '../protocol/messages.js';

/** Names of models that are shown of a worker; admission knows all. */
const maxModels = 100;
/** Two ages of one moment differ by what their messages took to arrive. */
const sameMomentMs = 1000;

interface Moment {
  /** When the heartbeat came, in milliseconds since the epoch. */
  heardTime: number;
  /** The worker in its heartbeat before. */
  before: FleetWorker | undefined;
}

/** The worker as operators see it, with times in place of ages. */
export function describeWorker(
  heartbeat: PoolHeartbeat,
  state: Exclude<PoolHeartbeat['state'], 'stopped'>,
  moment: Moment,
): FleetWorker {
  const { worker, concurrency, inFlight, meanJobMs, oldestJobMs, breakers = [], lastError } = heartbeat;
  const { pausedBy, defaultModel, models, calls, simulated, settingsVersion, release, host } = heartbeat;
  return {
    worker,
    state,
    pausedBy,
    concurrency,
    inFlight,
    oldestJobSince:
      oldestJobMs === undefined ? undefined : timeOf(-oldestJobMs, moment, moment.before?.oldestJobSince),
    meanJobMs: Math.round(meanJobMs),
    defaultModel,
    models: models?.slice(0, maxModels),
    breakers: breakers.map((breaker) => describeBreaker(breaker, moment)),
    calls,
    lastError: lastError && describeError(lastError, moment),
    simulated,
    settingsVersion,
    release,
    host,
  };
}

function describeBreaker(
  { model, state, nextProbeMs, reason, user }: NonNullable<PoolHeartbeat['breakers']>[number],
  moment: Moment,
): FleetBreaker {
  // Two entries of one model or user may stand side by side.
  const before = moment.before?.breakers.find(
    (each) => each.model === model && each.user === user && each.state === state,
  );
  return {
    model,
    state,
    reason,
    user,
    nextProbeAt: nextProbeMs > 0 ? timeOf(nextProbeMs, moment, before?.nextProbeAt) : undefined,
    since: before?.since ?? timeOf(0, moment, undefined),
  };
}

function describeError(
  { code, agoMs, sinceMs }: NonNullable<PoolHeartbeat['lastError']>,
  moment: Moment,
): FleetError {
  const before = moment.before?.lastError;
  return {
    code,
    at: timeOf(-agoMs, moment, before?.at),
    since: timeOf(-sinceMs, moment, before?.since),
  };
}

/** The greatest distance from now that a time may have, so that every heartbeat gives a date. */
const maxDistanceMs = 1e12;

/** The time that is this far from now; the one that was given before when they mean the same moment. */
function timeOf(offsetMs: number, { heardTime }: Moment, before: string | undefined): string {
  const bounded = Math.max(-maxDistanceMs, Math.min(offsetMs, maxDistanceMs));
  const time = heardTime + bounded;
  if (before !== undefined && Math.abs(Date.parse(before) - time) < sameMomentMs) return before;
  return new Date(time).toISOString();
}
