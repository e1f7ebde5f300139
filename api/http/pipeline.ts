import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Clients that pipeline at all send only a few requests at once. */
const maxUnanswered = 32;

/**
 * Handles the requests of one connection one after the other: a server may process only safe methods in parallel
 * (RFC 9112, 9.3.2), and a connection must not get more than one connection's share. Destroys a connection with more
 * than 32 unanswered requests.
 */
export class Pipeline {
  readonly #socket: Socket;
  readonly #handle: RequestListener;
  readonly #waiting: (readonly [IncomingMessage, ServerResponse])[] = [];
  #latest: ServerResponse | undefined;
  #unanswered = 0;

  constructor(socket: Socket, handle: RequestListener) {
    this.#socket = socket;
    this.#handle = handle;
  }

  get isIdle(): boolean {
    return this.#unanswered === 0;
  }

  get latest(): ServerResponse | undefined {
    return this.#latest;
  }

  add(request: IncomingMessage, response: ServerResponse): void {
    // Requests that were read together with the one that exceeded the limit.
    if (this.#socket.destroyed) return;
    this.#latest = response;
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
