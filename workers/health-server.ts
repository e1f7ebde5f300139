import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Config } from '../shared/config.js';
import type { Lifecycle } from '../shared/lifecycle.js';
import { announce } from '../shared/program.js';
import { type QueueStore, reasonOf } from '../shared/queue-store.js';

interface HealthServerDeps {
  config: Pick<Config, 'WORKER_PORT' | 'HOST'>;
  store: QueueStore;
  lifecycle: Lifecycle;
  /** Whether the pools take jobs. */
  working: () => boolean;
}

/** Serves `/livez` and `/readyz` for whoever watches this worker. */
export async function openHealthServer({
  config,
  store,
  lifecycle,
  working,
}: HealthServerDeps): Promise<void> {
  const server = createServer((request, response) => {
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
    if (request.url === '/livez') answer(200, { status: 'ok' });
    else if (request.url !== '/readyz') answer(404, { status: 'not found' });
    else if (lifecycle.stopping.aborted) answer(503, { status: 'draining' });
    else {
      void store.check().then(
        () => answer(working() ? 200 : 503, describe(store, working() ? 'ok' : 'starting')),
        (error: unknown) => answer(503, describe(store, 'failing', reasonOf(error))),
      );
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(config.WORKER_PORT, config.HOST, resolve);
  });
  announce({ type: 'listening', port: (server.address() as AddressInfo).port });
  lifecycle.opened('health server', server, (open) => {
    open.closeAllConnections();
    return new Promise<void>((resolve) => void open.close(() => resolve()));
  });
}

const describe = (store: QueueStore, status: string, detail?: string): object => ({
  status,
  checks: { queue: { store: store.kind, status: detail ? 'failing' : 'ok', ...(detail && { detail }) } },
});
