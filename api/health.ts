import type { RequestHandler } from 'express';
import type { QueueStore } from '../shared/queue.js';
import { reasonOf } from '../shared/queue.js';

interface HealthDeps {
  store: QueueStore;
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
export function readyz({ store, linked, draining }: HealthDeps): RequestHandler {
  return async (_request, response) => {
    const queue = await store.check().then(
      () => (linked() ? { status: 'ok' } : { status: 'failing', detail: 'not linked yet' }),
      (error: unknown) => ({ status: 'failing', detail: reasonOf(error) }),
    );
    const ready = queue.status === 'ok' && !draining();
    const status = draining() ? 'draining' : ready ? 'ok' : 'failing';
    response.status(ready ? 200 : 503).json({ status, checks: { queue: { store: store.kind, ...queue } } });
  };
}
