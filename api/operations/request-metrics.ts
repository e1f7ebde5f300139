import { type Request, type RequestHandler, type Response, Router } from 'express';
import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import type { FailureCode } from '../../shared/failures.js';
import type { ApiInstruments } from '../../shared/metrics/instruments.js';
import { onEventsBegun } from '../http/event-response.js';
import { elapsedMsOf, endOf, onProvider } from '../http/problem.js';

/**
 * Makes what counts requests by outcome, to be mounted before the routes of chats and blog. Listens to the response,
 * because controllers see neither early refusals nor clients that disconnect.
 */
export function createRequestCounts(metrics: ApiInstruments['metrics']) {
  for (const provider of ['none', ...providerIds] as const) {
    metrics.chatRequestsInFlight.set({ provider }, 0);
    metrics.streamsOpen.set({ provider }, 0);
  }
  const countChat: RequestHandler = (request, response, next) => {
    let provider = providerOf(request.headersDistinct['x-llm']);
    metrics.chatRequestsInFlight.inc({ provider });
    onProvider(response, (named) => {
      metrics.chatRequestsInFlight.dec({ provider });
      provider = named;
      metrics.chatRequestsInFlight.inc({ provider });
    });
    response.once('close', () => {
      // The body may be read after its client has disconnected.
      onProvider(response, undefined);
      metrics.chatRequestsInFlight.dec({ provider });
      metrics.chatRequests.inc({ provider, code: codeOf(response) });
    });
    next();
  };
  const countStreams: RequestHandler = (request, response, next) => {
    onEventsBegun(response, () => {
      const provider = providerOf([String(response.getHeader('X-LLM-Provider'))]);
      metrics.streamsOpen.inc({ provider });
      if (isNew(request, response))
        metrics.streamFirstEvent.observe({ provider }, elapsedMsOf(response) / 1000);
      response.once('close', () => {
        metrics.streamsOpen.dec({ provider });
        metrics.streams.inc({ provider, code: endOf(response) });
      });
    });
    next();
  };
  const blog: RequestHandler = (_request, response, next) => {
    response.once('close', () => metrics.blogRequests.inc({ code: codeOf(response) }));
    next();
  };
  /** For the requests at this path, where a `POST` begins a chat. */
  const chats = (path: string): RequestHandler =>
    Router({ caseSensitive: true }).use(path, countStreams, ifCreating(countChat));
  return { chats, blog };
}

/** Whether the request has begun the chat and reads its stream from the beginning. */
const isNew = (request: Request, response: Response): boolean =>
  request.method === 'POST' &&
  request.get('Last-Event-ID') === undefined &&
  !response.hasHeader('Idempotency-Replayed');

/** This is no route, because Express would then answer OPTIONS. */
const ifCreating =
  (handler: RequestHandler): RequestHandler =>
  (request, response, next) =>
    request.method === 'POST' && request.path === '/' ? handler(request, response, next) : next();

/** The known provider in a header, else `none`: a label must not come from the caller. */
const providerOf = (sent: readonly string[] = []): ProviderId | 'none' =>
  providerIds.find((id) => sent.length === 1 && sent[0] === id) ?? 'none';

function codeOf(response: Response): FailureCode | 'ok' | 'accepted' | 'client_closed' {
  const end = endOf(response);
  return end === 'ok' && response.statusCode === 202 ? 'accepted' : end;
}
