import { setTimeout as delay } from 'node:timers/promises';
import type { RequestHandler } from 'express';
import type { ApiInstruments } from '../../shared/metrics/instruments.js';

/** A text of all metrics takes some milliseconds of processor time. */
const betweenTextsMs = 1000;

/**
 * `GET /metrics`, for Prometheus; like the health pages it asks nobody who they are. The text is made once a second at
 * most: whoever asks within a second of the one before gets the next, together with all others, so that nobody gets
 * numbers from before they asked.
 */
export function metricsPage(instruments: Pick<ApiInstruments, 'scrape'>): RequestHandler {
  const scrapeNext = inTurn(() => instruments.scrape());
  return async (_request, response) => {
    const { contentType, text } = await scrapeNext();
    response.set('Content-Type', contentType).send(text);
  };
}

function inTurn<T>(work: () => Promise<T>): () => Promise<T> {
  let latestAt = Number.NEGATIVE_INFINITY;
  let next: Promise<T> | undefined;
  const begin = async (): Promise<T> => {
    await delay(Math.max(0, latestAt + betweenTextsMs - performance.now()), undefined, { ref: false });
    latestAt = performance.now();
    next = undefined;
    return work();
  };
  return () => {
    next ??= begin();
    return next;
  };
}
