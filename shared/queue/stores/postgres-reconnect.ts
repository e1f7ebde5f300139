import { setTimeout as delay } from 'node:timers/promises';
import { assertSchemaCompatibility, ConnectionClosedError, createPostgresBackend, type PgPool } from 'bullmq';

type CreateBackend = typeof createPostgresBackend;

/** Makes BullMQ's backends, whose locks are renewed over `renewals`: behind a thousand jobs that end they would run out. */
export const blockingBackends =
  (renewals: PgPool): CreateBackend =>
  (name, options, ...others) => {
    const backend = createPatientBackend(name, options, ...others);
    let renewing: ReturnType<CreateBackend> | undefined;
    const open = () => {
      const opened = createPatientBackend(name, { ...options, connection: renewals });
      return opened.on('error', (error) => backend.emit('error', error));
    };
    backend.extendLocks = (...locks) => {
      renewing ??= open();
      return renewing.extendLocks(...locks);
    };
    const close = backend.close.bind(backend);
    backend.close = async (...how) => {
      await Promise.all([close(...how), renewing?.close(...how)]);
    };
    return backend;
  };

/**
 * BullMQ's backend, but one that recovers. It looks at the schema before its first use and remembers also that it could
 * not, so that a queue or worker opened while the store was away would never work: this one looks again until it could.
 * And where the connection is lost, a worker that is told to stop stores an outcome no second time, but fails the job or
 * leaves it: this one stores it again until it could, or the process ends.
 */
const createPatientBackend: CreateBackend = (...settings) => {
  const backend = createPostgresBackend(...settings);
  const { connection } = backend;
  // It names the connection, which never fails, once the other is ready: what it remembers then is a success.
  const becomeReady = backend.waitUntilReady.bind(backend);
  let ready: Promise<void> | undefined;
  const look = async () => {
    try {
      await assertSchemaCompatibility(connection.pool, connection.schema);
    } catch (error) {
      ready = undefined;
      throw error;
    }
  };
  connection.waitUntilReady = () => {
    ready ??= look();
    return ready;
  };
  backend.waitUntilReady = async () => {
    await connection.waitUntilReady();
    await becomeReady();
  };
  const complete = backend.moveToCompleted.bind(backend);
  backend.moveToCompleted = async (...outcome) => {
    for (;;) {
      try {
        return await complete(...outcome);
      } catch (error) {
        if (!(error instanceof ConnectionClosedError) || backend.closing) throw error;
        await delay(pauseMs);
      }
    }
  };
  return backend;
};

const pauseMs = 200;
