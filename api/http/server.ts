import { EventEmitter, once } from 'node:events';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Express } from 'express';
import { withTimeout } from '../../shared/runtime/with-timeout.js';
import { Pipeline } from './pipeline.js';
import { problemForRawSocket } from './problem.js';
import { TurnQueue } from './turn-queue.js';

interface ServerOptions {
  app: Express;
  /** Whether the process is about to stop. */
  draining: () => boolean;
  /** How long a client may read nothing of an answer that waits for it, in milliseconds. */
  stalledMs?: number;
  /** How long a request may take to arrive, headers and body together, in milliseconds. */
  requestMs?: number;
}

/** An HTTP server that can be stopped without keeping anybody waiting for nothing. */
export interface ApiServer {
  listen(port: number, host: string): Promise<Server>;
  /**
   * Lets the requests in flight be answered, and for half of the grace at most takes more as long as there are any: load
   * balancers learn only by asking that they should look elsewhere. At the end of the grace what is left is cut off.
   */
  close(options: { graceMs: number; onGraceOver: () => void }): Promise<void>;
}

/** Longer than the usual 60 s of load balancers, so that they never use a connection that we have just closed. */
const keepAliveTimeout = 65_000;
/**
 * Connections that may wait to be accepted; the system has a limit of its own. With Node's 511 a client that opens a thousand at
 * once makes others wait for seconds, until their systems try again.
 */
const backlog = 4096;
/** They take some 30 ms; a wave of thousands must not keep the store's answers and the heartbeats waiting for seconds. */
const requestsPerTurn = 32;
/** Time to write the last answers once the grace is over. */
const lastAnswersMs = 500;

export function createApiServer(options: ServerOptions): ApiServer {
  const { app, draining, stalledMs = 30_000, requestMs = 30_000 } = options;
  const server = createServer({
    keepAliveTimeout,
    headersTimeout: requestMs,
    requestTimeout: requestMs,
    connectionsCheckingInterval: Math.min(requestMs, 1000),
    // Without a host header Node itself would answer, with no problem; the application does it.
    requireHostHeader: false,
  });
  /** Connections that nobody is being answered on, also those that have never sent a byte. */
  const quiet = new Set<Socket>();
  const inFlight = createInFlight();
  const turns = new TurnQueue(requestsPerTurn);
  const pipelines = new WeakMap<Socket, Pipeline>();
  const handle: RequestListener = (request, response) => {
    const { socket } = request;
    inFlight.add(response);
    // The answer before this one, which was read slowly, may have left its limit.
    socket.setTimeout(0);
    // From here on the answer takes up memory until the client has read it. Node puts another limit in its place once
    // that is done, and ends a connection whose limit has passed.
    response.once('prefinish', () => socket.setTimeout(stalledMs));
    response.once('close', () => {
      if (draining()) socket.destroySoon();
      else if (!socket.destroyed && pipelines.get(socket)?.isIdle) quiet.add(socket);
    });
    turns.run(() => app(request, response));
  };
  server.on('connection', (socket) => {
    quiet.add(socket);
    pipelines.set(socket, new Pipeline(socket, handle));
    socket.once('close', () => quiet.delete(socket));
  });
  server.on('request', (request, response) => {
    quiet.delete(request.socket);
    pipelines.get(request.socket)?.add(request, response);
  });
  // An expectation that is not understood may be ignored (RFC 9110, 10.1.1).
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  /** In the middle of an answer, or while an earlier request waits for its own, nothing else may be said. */
  const mayRefuse = (socket: Socket): boolean => {
    const answer = pipelines.get(socket)?.latest;
    const isBodyUnreadable = answer?.socket === socket && !answer.headersSent && !answer.req.complete;
    return socket.writable && (quiet.has(socket) || isBodyUnreadable);
  };
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (mayRefuse(socket as Socket)) {
      socket.end(problemForRawSocket(error), () => socket.destroy());
    } else socket.destroy();
  });
  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen({ port, host, backlog }, () => resolve(server));
      }),
    close: async ({ graceMs, onGraceOver }) => {
      const graceOver = setTimeout(() => {
        onGraceOver();
        setTimeout(() => server.closeAllConnections(), lastAnswersMs).unref();
      }, graceMs);
      await inFlight.none(graceMs / 2);
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of quiet) socket.destroy();
      await closed;
      clearTimeout(graceOver);
    },
  };
}

/** The answers that are not finished. */
function createInFlight() {
  const unfinished = new Set<ServerResponse>();
  const finished = new EventEmitter();
  return {
    add: (response: ServerResponse) => {
      unfinished.add(response);
      response.once('close', () => {
        unfinished.delete(response);
        if (unfinished.size === 0) finished.emit('all');
      });
    },
    /** Resolves as soon as there are none, or when this time is over, in milliseconds. */
    none: async (maxMs: number) => {
      if (unfinished.size > 0) await withTimeout(maxMs, once(finished, 'all')).catch(() => undefined);
    },
  };
}
