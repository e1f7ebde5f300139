import { assertSchemaCompatibility, createPostgresBackend } from 'bullmq';

/**
 * BullMQ's backend, but one that recovers: it looks at the schema before its first use and remembers also that it could
 * not, so that a queue or worker opened while the store was away would never work. This one looks again until it could.
 */
export const createPatientBackend: typeof createPostgresBackend = (...settings) => {
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
  return backend;
};
