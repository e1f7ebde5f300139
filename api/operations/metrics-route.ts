import type { RequestHandler } from 'express';
import type { ApiInstruments } from '../../shared/metrics/instruments.js';
import { singleFlight } from '../../shared/runtime/single-flight.js';

/** Writing all metrics takes some milliseconds of processor time. */
const minIntervalMs = 1000;

/**
 * `GET /metrics`, for Prometheus, without authentication, like the health pages. The text is written at most once a
 * second: requests that come meanwhile share it, and those that come sooner share the next one.
 */
export function metricsPage(instruments: Pick<ApiInstruments, 'scrape'>): RequestHandler {
  const scrape = singleFlight(() => instruments.scrape(), { apartMs: minIntervalMs });
  return async (_request, response) => {
    const { contentType, text } = await scrape();
    response.set('Content-Type', contentType).send(text);
  };
}
