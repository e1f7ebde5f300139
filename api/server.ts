import { createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Express } from 'express';
import { problemForRawSocket } from './problem.js';

interface ServerOptions {
  app: Express;
  /** Whether the process is about to stop. */
  draining: () => boolean;
}

/** An HTTP server that can be stopped without keeping anybody waiting for nothing. */
export interface ApiServer {
  listen(port: number, host: string): Promise<Server>;
  /** Takes no more requests and lets those in flight be answered; at the end of the grace what is left is cut off. */
  close(options: { graceMs: number; onGraceOver: () => void }): Promise<void>;
}

/** Longer than the usual 60 s of load balancers, so that they never use a connection that we have just closed. */
const keepAliveTimeout = 65_000;
/** Time to write the last answers once the grace is over. */
const lastAnswersMs = 500;

export function createApiServer({ app, draining }: ServerOptions): ApiServer {
  // Without a host header Node itself would answer, with no problem; the application does it.
  const server = createServer({ keepAliveTimeout, requireHostHeader: false }, app);
  /** Connections that nobody is being answered on, also those that have never sent a byte. */
  const quiet = new Set<Socket>();
  server.on('connection', (socket) => {
    quiet.add(socket);
    socket.once('close', () => quiet.delete(socket));
  });
  server.on('request', ({ socket }, response) => {
    quiet.delete(socket);
    response.once('close', () => {
      if (draining()) socket.destroySoon();
      else if (!socket.destroyed) quiet.add(socket);
    });
  });
  // An expectation that is not understood may be ignored (RFC 9110, 10.1.1).
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // In the middle of an answer nothing else may be said on the connection.
    if (socket.writable && quiet.has(socket as Socket)) {
      socket.end(problemForRawSocket(error), () => socket.destroy());
    } else socket.destroy();
  });
  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, host, () => resolve(server));
      }),
    close: ({ graceMs, onGraceOver }) =>
      new Promise((resolve) => {
        const graceOver = setTimeout(() => {
          onGraceOver();
          setTimeout(() => server.closeAllConnections(), lastAnswersMs).unref();
        }, graceMs);
        server.close(() => {
          clearTimeout(graceOver);
          resolve();
        });
        for (const socket of quiet) socket.destroy();
      }),
  };
}
