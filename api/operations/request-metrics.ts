import { type RequestHandler, type Response, Router } from 'express';
import { type ProviderId, providerIds } from '../../shared/contract.js';
import type { FailureCode } from '../../shared/failures.js';
import type { ApiInstruments } from '../../shared/metrics/instruments.js';
import { failureCodeOf } from '../http/problem.js';

/** Counts requests by what became of them; to stand before the routes of either interface. */
export interface RequestCounts {
  readonly chat: RequestHandler;
  readonly blog: RequestHandler;
}

type Metrics = Pick<ApiInstruments['metrics'], 'chatRequests' | 'chatRequestsInFlight' | 'blogRequests'>;

/** Here and not in the controllers, which see neither who is refused before them nor who goes before the answer. */
export function createRequestCounts(metrics: Metrics): RequestCounts {
  for (const provider of ['none', ...providerIds] as const) metrics.chatRequestsInFlight.set({ provider }, 0);
  const countChat: RequestHandler = (request, response, next) => {
    const provider = providerOf(request.headersDistinct['x-llm']);
    metrics.chatRequestsInFlight.inc({ provider });
    response.once('close', () => {
      metrics.chatRequestsInFlight.dec({ provider });
      metrics.chatRequests.inc({ provider, code: codeOf(response) });
    });
    next();
  };
  const blog: RequestHandler = (_request, response, next) => {
    response.once('close', () => metrics.blogRequests.inc({ code: codeOf(response) }));
    next();
  };
  return { chat: Router({ caseSensitive: true }).use('/chat', ifAsked(countChat)), blog };
}

/** Not a route of its own, which would have Express answer OPTIONS. */
const ifAsked =
  (handler: RequestHandler): RequestHandler =>
  (request, response, next) =>
    request.method === 'POST' && request.path === '/' ? handler(request, response, next) : next();

/** Of what a caller sent, one of the known words or nothing. */
const providerOf = (sent: readonly string[] = []): ProviderId | 'none' =>
  providerIds.find((id) => sent.length === 1 && sent[0] === id) ?? 'none';

function codeOf(response: Response): FailureCode | 'ok' | 'accepted' | 'client_closed' {
  if (!response.writableFinished) return 'client_closed';
  return failureCodeOf(response) ?? (response.statusCode === 202 ? 'accepted' : 'ok');
}
