import { randomUUID } from 'node:crypto';
import type { Request, RequestHandler, Response } from 'express';
import type { Log } from '../../shared/runtime/log.js';
import type { TraceSpan, Tracing } from '../../shared/runtime/tracing.js';
import { elapsedMsOf, endOf, failureCodeOf, requestIdOf } from './problem.js';

/** Gives every answer the id that appears in the logs and in the job. A caller's own id is not adopted. */
export function nameRequest(draining: () => boolean): RequestHandler {
  return (_request, response, next) => {
    response.locals.startedAt = performance.now();
    response.set('X-Request-Id', randomUUID());
    response.set('X-Content-Type-Options', 'nosniff');
    // The default, for chats and everything else without a Cache-Control of its own.
    response.set('Cache-Control', 'no-store');
    if (draining()) response.set('Connection', 'close');
    next();
  };
}

/** Logs every request when its response has ended, without anything that the caller sent. */
export function logRequest(log: Log): RequestHandler {
  return (request, response, next) => {
    response.once('close', () => {
      log.info(
        {
          requestId: response.getHeader('X-Request-Id'),
          // Absent when it is not traced.
          traceId: traceOf(response)?.traceId,
          method: request.method,
          route: routeOf(request) ?? null,
          status: response.writableFinished ? response.statusCode : 'client closed',
          // Absent when nothing failed.
          code: failureCodeOf(response),
          provider: response.getHeader('X-LLM-Provider'),
          // Absent when there was one.
          attempts: response.getHeader('X-LLM-Attempts'),
          ms: Math.round(elapsedMsOf(response)),
        },
        'request',
      );
    });
    next();
  };
}

/**
 * Traces each request, from its headers to the end of its response, as OpenTelemetry's conventions for HTTP have it,
 * but for the address, which may have text of the caller's: of that only the route's pattern is recorded. The request
 * must have its id. Its `traceparent` counts only with valid credentials, so the span is started when it is first asked
 * for, which is after they were checked.
 */
export function traceRequests(tracing: Tracing): RequestHandler {
  return (request, response, next) => {
    const start = () =>
      tracing.start(request.method, parentOf(request), {
        kind: 'server',
        startedAt: Date.now() - elapsedMsOf(response),
        attributes: {
          'http.request.method': request.method,
          'url.scheme': request.protocol,
          'network.protocol.version': request.httpVersion,
          'quillgate.request.id': requestIdOf(response),
        },
      });
    response.locals.startTrace = start;
    response.once('close', () => end(traceOf(response), request, response));
    next();
  };
}

/** The span of the request; undefined when it is not traced. */
export function traceOf({ locals }: Response): TraceSpan | undefined {
  locals.trace ??= locals.startTrace?.();
  return locals.trace;
}

/** Clients without valid credentials must not decide what is recorded. */
const parentOf = (request: Request & { user?: unknown }): string | undefined =>
  request.user === undefined ? undefined : request.get('traceparent');

function end(span: TraceSpan | undefined, request: Request, response: Response): void {
  const route = routeOf(request);
  const { statusCode } = response;
  const code = endOf(response);
  if (route !== undefined) span?.rename(`${request.method} ${route}`);
  span?.set({
    'http.route': route,
    'http.response.status_code': response.headersSent ? statusCode : undefined,
    'quillgate.code': code,
    'quillgate.provider': response.getHeader('X-LLM-Provider')?.toString(),
  });
  // A stream that fails after its beginning has status 200. A client's error is not ours.
  const hasFailed = code !== 'ok' && code !== 'client_closed' && (statusCode >= 500 || statusCode < 300);
  span?.end(hasFailed ? { error: code } : {});
}

/** The pattern of the request's route, such as `/chat/:id`: the address itself may have text from the caller. */
const routeOf = ({ route }: Request): string | undefined => route?.path.replace('*', ':');
