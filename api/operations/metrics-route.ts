import { setTimeout as delay } from 'node:timers/promises';
import type { RequestHandler } from 'express';
import type { ApiInstruments } from '../../shared/metrics/instruments.js';

/** Writing all metrics takes some milliseconds of processor time. */
const minIntervalMs = 1000;

/**
 * `GET /metrics`, for Prometheus, without authentication, like the health pages. The text is written at most once a
 * second: requests that come sooner share the next one, so that nobody gets numbers from before their request.
 */
export function metricsPage(instruments: Pick<ApiInstruments, 'scrape'>): RequestHandler {
  const scrapeNext = spacedOut(() => instruments.scrape());
  return async (_request, response) => {
    const { contentType, text } = await scrapeNext();
    response.set('Content-Type', contentType).send(text);
  };
}

function spacedOut<T>(work: () => Promise<T>): () => Promise<T> {
  let lastAt = Number.NEGATIVE_INFINITY;
  let next: Promise<T> | undefined;
  const begin = async (): Promise<T> => {
    await delay(Math.max(0, lastAt + minIntervalMs - performance.now()), undefined, { ref: false });
    lastAt = performance.now();
    next = undefined;
    return work();
  };
  return () => {
    next ??= begin();
    return next;
  };
}
