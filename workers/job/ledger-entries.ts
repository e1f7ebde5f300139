import { type ChatEnd, decodeOrigin, type NewEntry } from '../../shared/protocol/entries.js';
import { nextOf, type Outcome } from '../../shared/protocol/outcome.js';
import { lostEntries, originByName } from '../../shared/queue/ledger-writer.js';
import type { JobEnd } from './outcomes.js';
import type { RunningJob } from './running-job.js';

/**
 * The entry of a run that has ended, or that goes on after these calls elsewhere. Only what the store will take ends
 * the chat: where the lock was lost, another worker answers, unless the reply was published.
 */
export function runEntryOf(
  job: RunningJob,
  { end, goesOn }: { end?: JobEnd | undefined; goesOn: boolean },
): NewEntry {
  const { chatId: chat, provider, queued, calls, holdsLock, isPublished } = job;
  const isEnd = !goesOn && (holdsLock || isPublished) && !(end && nextOf(end.outcome));
  return {
    kind: 'run',
    chat,
    attempt: job.facts.attempt ?? 1,
    origin: originOf(job),
    addedAt: queued.timestamp,
    provider,
    run: queued.stalledCounter + 1,
    calls: [...calls],
    ...(goesOn && { goesOn }),
    ...(isEnd && { end: chatEndOf(job, end) }),
  };
}

/** The entry of the runs that ended without a word before this one; the chat of a job that is given up ends so. */
export function lostRunsOf(job: RunningJob): NewEntry[] {
  const { id, provider, queued } = job;
  const { name, timestamp: addedAt, stalledCounter: lost } = queued;
  const end = queued.deferredFailure === undefined ? undefined : { code: 'internal', endedAt: job.now() };
  return lostEntries(provider, [{ id, name, addedAt, lost }], end);
}

const originOf = ({ provider, queued, facts: { user = '' } }: RunningJob): string =>
  originByName(queued.name, { provider, user });

function chatEndOf(job: RunningJob, end: JobEnd | undefined): ChatEnd {
  const { provider, calls, queued } = job;
  const endedAt = job.now();
  const model = calls.at(-1)?.model ?? decodeOrigin(queued.name)?.model;
  // An unexpected error.
  if (end === undefined) return { code: 'internal', endedAt, provider, model };
  const { own, outcome } = end;
  const { queueMs: waitedMs, providerMs: calledMs, firstTokenMs, attempts } = outcome;
  return {
    code: outcome.kind === 'failed' ? outcome.code : outcome.kind,
    endedAt,
    provider,
    model: 'model' in outcome ? outcome.model : model,
    error: errorOf(own),
    attempts: attempts?.map(({ providerError: error, ...attempt }) => ({ ...attempt, error })),
    waitedMs,
    calledMs,
    firstTokenMs,
  };
}

const errorOf = (outcome: Outcome) => (outcome.kind === 'failed' ? outcome.providerError : undefined);
