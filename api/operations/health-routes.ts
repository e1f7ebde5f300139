import type { RequestHandler } from 'express';
import type { Database } from '../../db/database/client.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import { reasonOf } from '../../shared/queue/queue-store.js';
import { release } from '../../shared/runtime/release.js';

interface HealthDeps {
  store: QueueStore;
  database: Pick<Database, 'check'>;
  /** Whether the channels to the workers are open. */
  linked: () => boolean;
  draining: () => boolean;
}

/** `GET /livez`: the process answers. */
export const livez: RequestHandler = (_request, response) => void response.json({ status: 'ok' });

/**
 * `GET /readyz`: 200 when requests can be served, else 503; each check is named, and providers never count. While
 * draining it is 503, so that load balancers look elsewhere.
 */
export function readyz({ store, database, linked, draining }: HealthDeps): RequestHandler {
  return async (_request, response) => {
    const [queue, databaseChecks] = await Promise.all([checkQueue(store, linked), database.check()]);
    const checks = { ...databaseChecks, queue: { store: store.kind, ...queue } };
    const well = Object.values(checks).every((check) => check.status === 'ok');
    const status = draining() ? 'draining' : well ? 'ok' : 'failing';
    response.status(status === 'ok' ? 200 : 503).json({ status, release, checks });
  };
}

const checkQueue = (store: QueueStore, linked: () => boolean) =>
  store.check().then(
    () => (linked() ? { status: 'ok' } : { status: 'failing', detail: 'not linked yet' }),
    (error: unknown) => ({ status: 'failing', detail: reasonOf(error) }),
  );
