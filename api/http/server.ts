import { EventEmitter, once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import type { Express } from 'express';
import { withTimeout } from '../../shared/runtime/retry.js';
import { problemForRawSocket } from './problem.js';

interface ServerOptions {
  app: Express;
  draining: () => boolean;
  /** How long a client may read nothing of an answer that is ready for it, in milliseconds. */
  stalledMs?: number;
  /** How long a request may take to arrive, headers and body together, in milliseconds: 30 MB by a slow line. */
  requestMs?: number;
}

/** Longer than the usual 60 s of load balancers, so that they never use a connection that we have just closed. */
const keepAliveTimeout = 65_000;
/**
 * Connections that may wait to be accepted; the system has a limit of its own. With Node's 511 a client that opens a
 * thousand at once delays others for seconds, until their systems try again.
 */
const backlog = 4096;
/** These take some 30 ms; a burst of thousands must not delay the store's answers and the heartbeats for seconds. */
const requestsPerTurn = 32;
/** How long headers may take to arrive: a client that sends none holds a connection for as long. */
const maxHeadersMs = 30_000;
/** Time to write the last answers once the grace is over. */
const lastAnswersMs = 500;

/** An HTTP server that drains its connections before it stops. */
export class ApiServer {
  readonly #server: Server;
  readonly #app: Express;
  readonly #draining: () => boolean;
  readonly #stalledMs: number;
  /** Connections without a request in flight, also those that have never sent a byte. */
  readonly #idle = new Set<Socket>();
  readonly #pipelines = new WeakMap<Socket, Pipeline>();
  readonly #inFlight = new InFlight();
  readonly #turns = new TurnQueue(requestsPerTurn);

  constructor({ app, draining, stalledMs = 30_000, requestMs = 120_000 }: ServerOptions) {
    this.#app = app;
    this.#draining = draining;
    this.#stalledMs = stalledMs;
    this.#server = createServer({
      keepAliveTimeout,
      headersTimeout: Math.min(requestMs, maxHeadersMs),
      requestTimeout: requestMs,
      connectionsCheckingInterval: Math.min(requestMs, 1000),
      // Node itself would refuse a request without a host header, but not with a problem; the application does.
      requireHostHeader: false,
    });
    this.#server.on('connection', (socket) => this.#accept(socket));
    this.#server.on('request', (request, response) => {
      this.#idle.delete(request.socket);
      this.#pipelines.get(request.socket)?.add(request, response);
    });
    // The server may ignore an expectation that it does not understand (RFC 9110, 10.1.1).
    this.#server.on('checkExpectation', (request, response) =>
      this.#server.emit('request', request, response),
    );
    this.#server.on('clientError', (error, socket) => this.#refuse(error, socket as Socket));
  }

  /** Rejects with the system's error, such as `EADDRINUSE`. */
  listen(port: number, host: string): Promise<Server> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ port, host, backlog }, () => resolve(this.#server));
    });
  }

  /**
   * Answers the requests in flight, and accepts new ones for as long as there are any, but at most for half of the
   * grace: load balancers notice only from answers that the server is draining. Cuts off what is left at the end of the
   * grace.
   */
  async close({ graceMs, onGraceOver }: { graceMs: number; onGraceOver: () => void }): Promise<void> {
    const graceOver = setTimeout(() => {
      onGraceOver();
      setTimeout(() => this.#server.closeAllConnections(), lastAnswersMs).unref();
    }, graceMs);
    await this.#inFlight.none(graceMs / 2);
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#idle) socket.destroy();
    await closed;
    clearTimeout(graceOver);
  }

  #accept(socket: Socket): void {
    this.#idle.add(socket);
    this.#pipelines.set(socket, new Pipeline(socket, (request, response) => this.#handle(request, response)));
    socket.once('close', () => this.#idle.delete(socket));
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    this.#inFlight.add(response);
    // A slow reader of the previous answer may have left its timeout behind.
    socket.setTimeout(0);
    // From here on the answer takes up memory until the client has read it. Node sets another timeout after that, and
    // closes a connection whose timeout has passed.
    response.once('prefinish', () => socket.setTimeout(this.#stalledMs));
    response.once('close', () => {
      if (this.#draining()) socket.destroySoon();
      else if (!socket.destroyed && this.#pipelines.get(socket)?.isIdle) this.#idle.add(socket);
    });
    this.#turns.run(() => this.#app(request, response));
  }

  #refuse(error: NodeJS.ErrnoException, socket: Socket): void {
    if (this.#mayRefuse(socket)) socket.end(problemForRawSocket(error), () => socket.destroy());
    else socket.destroy();
  }

  /** Nothing else may be written in the middle of an answer, or while an earlier request waits for its own. */
  #mayRefuse(socket: Socket): boolean {
    const answer = this.#pipelines.get(socket)?.latest;
    const isBodyUnreadable = answer?.socket === socket && !answer.headersSent && !answer.req.complete;
    return socket.writable && (this.#idle.has(socket) || isBodyUnreadable);
  }
}

class InFlight {
  readonly #unfinished = new Set<ServerResponse>();
  readonly #finished = new EventEmitter();

  add(response: ServerResponse): void {
    this.#unfinished.add(response);
    response.once('close', () => {
      this.#unfinished.delete(response);
      if (this.#unfinished.size === 0) this.#finished.emit('all');
    });
  }

  /** Resolves as soon as there are none, or after this time, in milliseconds. */
  async none(maxMs: number): Promise<void> {
    if (this.#unfinished.size === 0) return;
    await withTimeout(maxMs, once(this.#finished, 'all')).catch(() => undefined);
  }
}

/** Clients that pipeline at all send only a few requests at once. */
const maxUnanswered = 32;

/**
 * Handles the requests of one connection one after the other: a server may process only safe methods in parallel
 * (RFC 9112, 9.3.2), and a connection must not get more than one connection's share. Destroys a connection with more
 * than 32 unanswered requests.
 */
class Pipeline {
  readonly #socket: Socket;
  readonly #handle: RequestListener;
  readonly #waiting: (readonly [IncomingMessage, ServerResponse])[] = [];
  latest: ServerResponse | undefined;
  #unanswered = 0;

  constructor(socket: Socket, handle: RequestListener) {
    this.#socket = socket;
    this.#handle = handle;
  }

  get isIdle(): boolean {
    return this.#unanswered === 0;
  }

  add(request: IncomingMessage, response: ServerResponse): void {
    // Requests that were read together with the one that exceeded the limit.
    if (this.#socket.destroyed) return;
    this.latest = response;
    this.#unanswered++;
    if (this.#unanswered > maxUnanswered) this.#socket.destroy();
    else if (this.#unanswered === 1) this.#begin(request, response);
    else this.#waiting.push([request, response]);
  }

  #begin(request: IncomingMessage, response: ServerResponse): void {
    response.once('close', () => this.#answered());
    this.#handle(request, response);
  }

  #answered(): void {
    this.#unanswered--;
    const [next] = this.#waiting;
    // In a later turn: a sequence of requests with immediate answers would block all other connections.
    if (next) setImmediate(() => this.#next());
  }

  #next(): void {
    const next = this.#waiting.shift();
    // The previous answer closed the connection: no other one can be sent.
    if (next === undefined || next[1].socket === null || this.#socket.destroyed) this.#waiting.length = 0;
    else this.#begin(...next);
  }
}

/**
 * Starts at most `perTurn` tasks in one turn of the event loop, in order; the rest wait for later turns. So timers,
 * answers of the stores and heartbeats are handled in between, however many tasks arrive at once: in a turn that takes
 * seconds, an answer that already waits in a socket would count as late.
 */
export class TurnQueue {
  readonly #perTurn: number;
  readonly #waiting: (() => void)[] = [];
  #started = 0;
  #isTurnWatched = false;

  constructor(perTurn: number) {
    this.#perTurn = perTurn;
  }

  /** Starts the task, which must not throw, now or in a later turn. */
  run(task: () => void): void {
    this.#watchTurn();
    if (this.#started < this.#perTurn && this.#waiting.length === 0) this.#start(task);
    else this.#waiting.push(task);
  }

  #start(task: () => void): void {
    this.#started++;
    task();
  }

  #watchTurn(): void {
    if (this.#isTurnWatched) return;
    this.#isTurnWatched = true;
    setImmediate(() => {
      this.#isTurnWatched = false;
      this.#started = 0;
      if (this.#waiting.length === 0) return;
      this.#watchTurn();
      for (const task of this.#waiting.splice(0, this.#perTurn)) this.#start(task);
    });
  }
}
