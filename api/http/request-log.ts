import { randomUUID } from 'node:crypto';
import type { RequestHandler } from 'express';
import type { Log } from '../../shared/runtime/log.js';
import { elapsedMsOf, failureCodeOf } from './problem.js';
import { routeOf, traceOf } from './request-trace.js';

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
