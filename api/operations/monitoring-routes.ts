import type { RequestHandler } from 'express';
import type { Database } from '../../db/database/client.js';
import { Failure } from '../../shared/failures.js';
import type { ApiInstruments } from '../../shared/metrics/instruments.js';
import { type QueueStore, reasonOf } from '../../shared/queue/queue-store.js';
import { release } from '../../shared/runtime/program.js';
import { singleFlight } from '../../shared/runtime/retry.js';
import { isRebound } from '../../shared/urls/hosts.js';

/** The checks of `/readyz`. */
export interface HealthDeps {
  store: QueueStore;
  database: Pick<Database, 'check'>;
  /** This process's end of the queue. */
  link: { readonly isConnected: boolean };
  draining: () => boolean;
}

/** `GET /livez`: 200 as long as the process answers at all. */
export const livez: RequestHandler = (_request, response) => void response.json({ status: 'ok' });

/**
 * `GET /readyz`: 200 when requests can be served, otherwise 503, with the result of each check. Providers are never
 * checked. While draining it is 503, so that load balancers send requests elsewhere.
 */
export function readyz({ store, database, link, draining }: HealthDeps): RequestHandler {
  return async (_request, response) => {
    const [queue, databaseChecks] = await Promise.all([checkQueue(store, link), database.check()]);
    const checks = { ...databaseChecks, queue: { store: store.kind, ...queue } };
    const isReady = Object.values(checks).every((check) => check.status === 'ok');
    const status = draining() ? 'draining' : isReady ? 'ok' : 'failing';
    response.status(status === 'ok' ? 200 : 503).json({ status, release, checks });
  };
}

const checkQueue = (store: QueueStore, link: HealthDeps['link']) =>
  store.check().then(
    () => (link.isConnected ? { status: 'ok' } : { status: 'failing', detail: 'not connected yet' }),
    (error: unknown) => ({ status: 'failing', detail: reasonOf(error) }),
  );

const loopbackAlone = 'On this address the page is for the hosts localhost, 127.0.0.1 and [::1] alone.';

/** Writing all metrics takes some milliseconds of processor time. */
const minScrapeIntervalMs = 1000;

/**
 * `GET /metrics`, but not for a web page whose name leads here (RFC 9110, 15.5.20). Written at
 * most once a second: requests that come sooner share the next.
 */
export function metricsPage(
  instruments: Pick<ApiInstruments, 'scrape'>,
  timing: Pick<Parameters<typeof singleFlight>[1], 'delay'> = {},
): RequestHandler {
  const scrape = singleFlight(() => instruments.scrape(), { apartMs: minScrapeIntervalMs, ...timing });
  return async (request, response) => {
    if (isRebound(request)) throw new Failure('invalid_request', { status: 421, detail: loopbackAlone });
    const { contentType, text } = await scrape();
    response.set('Content-Type', contentType).send(text);
  };
}
