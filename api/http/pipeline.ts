import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Clients that pipeline at all send a few requests at once. */
const maxUnanswered = 32;

/**
 * The requests of one connection, each of which is begun when the one before it has been answered: a server may treat at most
 * safe methods in parallel (RFC 9112, 9.3.2), and one connection shall take no more than one connection's share. A
 * connection with more than 32 requests that wait for their answers is destroyed.
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

  /** Whether nothing that was asked waits for its answer. */
  get isIdle(): boolean {
    return this.#unanswered === 0;
  }

  /** The answer to the last request that has come. */
  get latest(): ServerResponse | undefined {
    return this.#latest;
  }

  add(request: IncomingMessage, response: ServerResponse): void {
    // What was read together with the request that was one too many.
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
    // Not at once: with answers that are there at once, a row of requests would hold up everybody else.
    if (next) setImmediate(() => this.#next());
  }

  #next(): void {
    const next = this.#waiting.shift();
    // The answer before it was the connection's last: nobody will get another one.
    if (next === undefined || next[1].socket === null || this.#socket.destroyed) this.#waiting.length = 0;
    else this.#begin(...next);
  }
}
