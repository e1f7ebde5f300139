import type { RequestHandler } from 'express';
import type { ApiInstruments } from '../shared/instruments.js';

/** `GET /metrics`, for Prometheus; like the health pages it asks nobody who they are. */
export function metricsPage(instruments: Pick<ApiInstruments, 'scrape'>): RequestHandler {
  return async (_request, response) => {
    const { contentType, text } = await instruments.scrape();
    response.set({ 'Content-Type': contentType, 'Cache-Control': 'no-store' }).send(text);
  };
}
