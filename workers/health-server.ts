import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Config } from '../shared/config/config.js';
import type { WorkerInstruments } from '../shared/metrics/instruments.js';
import { type QueueStore, reasonOf } from '../shared/queue/queue-store.js';
import type { Lifecycle } from '../shared/runtime/lifecycle.js';
import { explainListenError, notifyParent } from '../shared/runtime/program.js';
import { release } from '../shared/runtime/release.js';
import { isRebound } from '../shared/urls/hosts.js';

interface HealthServerDeps {
  config: Pick<Config, 'WORKER_PORT' | 'HOST'>;
  store: QueueStore;
  instruments: Pick<WorkerInstruments, 'scrape'>;
  lifecycle: Lifecycle;
  isWorking: () => boolean;
}

/** Serves this worker's `/livez`, `/readyz` and `/metrics`; closed with the lifecycle. Throws without its port. */
export async function openHealthServer(deps: HealthServerDeps): Promise<void> {
  const { config, store, instruments, lifecycle, isWorking } = deps;
  const server = createServer((request, response) => {
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
    if (request.url === '/livez') answer(200, { status: 'ok' });
    else if (request.url === '/metrics' && isRebound(request)) answer(421, { status: 'misdirected' });
    else if (request.url === '/metrics')
      void instruments.scrape().then(
        ({ contentType, text }) =>
          response.writeHead(200, { 'Content-Type': contentType, 'Cache-Control': 'no-store' }).end(text),
        () => answer(500, { status: 'failing' }),
      );
    else if (request.url !== '/readyz') answer(404, { status: 'not found' });
    else if (lifecycle.stopping.aborted) answer(503, { status: 'draining' });
    else {
      void store.check().then(
        () => answer(isWorking() ? 200 : 503, describe(store, isWorking() ? 'ok' : 'starting')),
        (error: unknown) => answer(503, describe(store, 'failing', reasonOf(error))),
      );
    }
  });
  const address = { variable: 'WORKER_PORT', port: config.WORKER_PORT, host: config.HOST };
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(explainListenError(error, address)));
    server.listen(address.port, address.host, resolve);
  });
  notifyParent({ type: 'listening', port: (server.address() as AddressInfo).port });
  lifecycle.opened('health server', server, (open) => {
    open.closeAllConnections();
    return new Promise<void>((resolve) => void open.close(() => resolve()));
  });
}

const describe = (store: QueueStore, status: string, detail?: string): object => ({
  status,
  release,
  checks: { queue: { store: store.kind, status: detail ? 'failing' : 'ok', ...(detail && { detail }) } },
});
