/*
 * Patch of bullmq 6.7.0: `run`, `moveToCompleted`, `moveToFailed`, `extendLocks` and `waitUntilReady` of the
 * PostgreSQL backend.
 * Gives: correctness, but for `skipSignals` (speed, see `postgres-adds.ts`): recovery from an outage, locks that are
 * renewed under load, results that are stored once, no busy loop at a full queue.
 * Until: BullMQ checks its schema again after a failure, renews locks apart from other statements, stores a result
 * again after a lost connection, and asks for a job by the queue's limit.
 */
import { assertSchemaCompatibility, ConnectionClosedError, createPostgresBackend, type PgPool } from 'bullmq';
import { retry } from '../../runtime/retry.js';
import { type BackendCalls, batchAdds } from './postgres-adds.js';

type CreateBackend = typeof createPostgresBackend;
type Backend = ReturnType<CreateBackend>;

/** Makes BullMQ's backends, which recover from an outage and renew locks over a pool of their own. */
export const recoveringBackends =
  (renewals: PgPool): CreateBackend =>
  (name, options, ...others) => {
    const backend = createRecoveringBackend(name, options, ...others);
    renewLocksWith(() => createRecoveringBackend(name, { ...options, connection: renewals }), backend);
    return backend;
  };

const createRecoveringBackend: CreateBackend = (...settings) => {
  const backend = createPostgresBackend(...settings);
  recheckSchema(backend);
  leaveEndedJobs(backend);
  retryCompletion(backend);
  batchAdds(backend);
  skipSignals(backend);
  return backend;
};

/** Renews locks over another backend: behind a thousand jobs that complete at once they would expire. */
function renewLocksWith(open: () => Backend, backend: Backend): void {
  let renewing: Backend | undefined;
  backend.extendLocks = (...locks) => {
    renewing ??= open().on('error', (error) => backend.emit('error', error));
    return renewing.extendLocks(...locks);
  };
  const close = backend.close.bind(backend);
  backend.close = async (...options) => {
    await Promise.all([close(...options), renewing?.close(...options)]);
  };
}

/** Checks the schema again after a failure, which BullMQ remembers: what is opened in an outage would never work. */
function recheckSchema(backend: Backend): void {
  const { connection } = backend;
  let ready: Promise<void> | undefined;
  const check = async () => {
    try {
      await assertSchemaCompatibility(connection.pool, connection.schema);
    } catch (error) {
      ready = undefined;
      throw error;
    }
  };
  connection.waitUntilReady = () => {
    ready ??= check();
    return ready;
  };
  // BullMQ's own step names the connection, which never fails once the schema is good: what it remembers is a success.
  const nameConnection = backend.waitUntilReady.bind(backend);
  backend.waitUntilReady = async () => {
    await connection.waitUntilReady();
    await nameConnection();
  };
}

/**
 * Leaves out what BullMQ asks after each fetch that has found nothing: for how long a rate limit holds, unless this
 * worker has one, and when the next delayed job is due, which it asks again before it waits. And answers whether there
 * is a job by the queue's limit, too: BullMQ would ask and be refused without a pause while the queue is full.
 */
function skipSignals(backend: Backend): void {
  const calls = backend as unknown as BackendCalls;
  const run = calls.run.bind(backend);
  calls.run = async (command, call = []) => {
    if (command === 'next_signal' && calls.opts.limiter === undefined) return { rows: [] };
    if (command === 'has_waiting_job') return calls.query(hasJobToTake, [...call]);
    return run(command, call);
  };
}

const hasJobToTake = `
  select exists (select from job where queue = $1 and state = 'waiting')
  and not exists (select from meta where queue = $1 and field = 'concurrency'
    and value::integer <= (select count(*) from job where queue = $1 and state = 'active')) as present`;

/**
 * Leaves the removal of ended jobs to the pruner. BullMQ would remove old ones with each job that ends, in a statement
 * that cannot use their partial index, because the state is a parameter: it reads every job of the queue.
 */
function leaveEndedJobs(backend: Backend): void {
  const complete = backend.moveToCompleted.bind(backend);
  const fail = backend.moveToFailed.bind(backend);
  backend.moveToCompleted = (...[job, value, , ...others]) => complete(job, value, false, ...others);
  backend.moveToFailed = (...[job, reason, , ...others]) => fail(job, reason, false, ...others);
}

const completionPauseMs = 200;

/**
 * Stores a result again when the connection was lost, until that succeeds or the process ends. A worker that is closing
 * tries only once: it would fail the job or leave it to others, although its call was answered.
 */
function retryCompletion(backend: Backend): void {
  const complete = backend.moveToCompleted.bind(backend);
  const shouldRetry = (error: unknown) => error instanceof ConnectionClosedError && !backend.closing;
  backend.moveToCompleted = (...result) =>
    retry(() => complete(...result), { pauseMs: completionPauseMs, shouldRetry });
}
