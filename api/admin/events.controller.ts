import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get, Request, Response, Route, Security, SuccessResponse } from '@tsoa/runtime';
import type { Response as HttpResponse } from 'express';
import type { Problem } from '../../shared/contracts/contract.js';
import type { Fleet } from '../../shared/contracts/fleet-contract.js';
import { Failure } from '../../shared/failures.js';
import type { FleetState } from '../../shared/fleet/fleet-state.js';
import type { AuthenticatedRequest } from '../access/caller.js';
import { mayStillOperate } from '../access/operators.js';
import { EventResponse, type ServerSentEvent } from '../http/event-response.js';
import { recordFailure, requestIdOf, toProblem } from '../http/problem.js';

/** The dependencies of the stream of the fleet's state. */
export interface EventsControllerDeps {
  events: Pick<FleetEvents, 'follow' | 'answerHead'>;
}

@Route('admin/events')
@Security('admin')
@Response<Problem, { 'Retry-After': string }>('429', 'Too many failed logins, or too many streams')
export class EventsController extends Controller {
  constructor(private readonly deps: EventsControllerDeps) {
    super();
  }

  /**
   * The state of the fleet as server-sent events: first a `snapshot`, which is that of `GET /admin/pools`; then a
   * `provider` (one of its `providers`) or a `queue` (its `queue`) whenever that has changed, with its whole state.
   * When none of all that has been sent for about a second, an `alive` (`{"at": …}`, the time of the look that found
   * nothing new) is: a stream that sends nothing for longer than 2.5 s hangs, and is to be opened anew. It ends with an
   * `error` (a problem) when the token or the session is no longer valid, and
   * without one when the server stops; a client that comes back gets a snapshot. A user may have 20 streams at each API
   * process.
   *
   * @summary Follow the state of the fleet
   */
  @Get()
  @SuccessResponse<{ 'X-Accel-Buffering': string }>(
    '200',
    'Events, until one of both leaves',
    'text/event-stream',
  )
  async followFleet(@Request() request: AuthenticatedRequest): Promise<string> {
    const { events } = this.deps;
    const response = request.res as HttpResponse;
    if (request.method === 'HEAD') events.answerHead(response);
    else
      await events.follow(response, {
        user: request.user.id,
        isAllowed: () => mayStillOperate(request),
      });
    return alreadySent;
  }
}

/** The body that the generated route gets to send; the response has ended by then. */
const alreadySent = '';

interface FleetEventsDeps {
  fleet: Pick<FleetState, 'read'>;
  stopping: AbortSignal;
  /** Time between two looks at the fleet, in milliseconds. */
  lookEveryMs?: number;
  /** After so long without an event a reader is sent an `alive`, in milliseconds. */
  aliveAfterMs?: number;
}

/** A part that changes by itself: the queue, or one provider with all of its workers. */
interface Part {
  readonly event: ServerSentEvent;
  /** The number of the look at which it changed last. */
  readonly since: number;
}

/** The fleet at one look, ready to be sent to any number of readers. */
interface Look {
  readonly number: number;
  readonly snapshot: ServerSentEvent;
  /** The event for a reader who would get no other. */
  readonly alive: ServerSentEvent;
  readonly parts: ReadonlyMap<string, Part>;
}

interface Reading {
  /** Id of the user. */
  readonly user: string;
  readonly isAllowed: () => boolean;
}

/** Streams at once in this process, of all and of one user; a console has one for each page. */
const maxReaders = 200;
const maxReadersPerUser = 20;
/** Two looks, less the timers' variance: about a second, which one look takes while the store does not answer. */
const defaultAliveAfterMs = 900;

/**
 * The state of the fleet as server-sent events: a `snapshot`, then a `queue` or `provider` whenever that has changed,
 * and an `alive` when a look has found nothing new for a second: a reader tells by it a quiet fleet from a connection
 * that hangs. One look serves all readers, and there are none without readers.
 */
export class FleetEvents {
  readonly #deps: FleetEventsDeps;
  readonly #readers = new Set<Reader>();
  #looking: Promise<void> | undefined;
  #latest: Look | undefined;

  constructor(deps: FleetEventsDeps) {
    this.#deps = deps;
    deps.stopping.addEventListener('abort', () => {
      for (const reader of this.#readers) reader.close();
    });
  }

  /** Writes events until the client leaves, `isAllowed` becomes false, or the process stops. Throws `rate_limited`. */
  async follow(response: HttpResponse, { user, isAllowed }: Reading): Promise<void> {
    const { stopping, aliveAfterMs = defaultAliveAfterMs } = this.#deps;
    const ofUser = [...this.#readers].filter((reader) => reader.user === user).length;
    if (this.#readers.size >= maxReaders || ofUser >= maxReadersPerUser)
      throw new Failure('rate_limited', { retryAfterMs: 5000 });
    if (stopping.aborted) throw new Failure('internal', { retryable: true, retryAfterMs: 1000 });
    if (response.destroyed) return;
    const reader = new Reader(response, { user, isAllowed, aliveAfterMs });
    const closed = once(response, 'close');
    this.#readers.add(reader);
    try {
      this.#looking ??= this.#lookWhileRead();
      if (this.#latest) reader.update(this.#latest);
      await closed;
    } finally {
      this.#readers.delete(reader);
    }
  }

  /** Answers a HEAD request: a stream without its events. */
  answerHead(response: HttpResponse): void {
    const events = new EventResponse(response);
    events.begin({});
    events.close();
  }

  async #lookWhileRead(): Promise<void> {
    while (this.#readers.size > 0) {
      this.#latest = toLook(await this.#deps.fleet.read(), this.#latest);
      for (const reader of this.#readers) reader.update(this.#latest);
      await delay(this.#deps.lookEveryMs ?? 500, undefined, { ref: false });
    }
    this.#looking = undefined;
    this.#latest = undefined;
  }
}

interface ReaderDeps extends Reading {
  readonly aliveAfterMs: number;
}

/** One stream. What its client has not read is never more than one look's events. */
class Reader {
  readonly #response: HttpResponse;
  readonly #events: EventResponse;
  readonly #reading: ReaderDeps;
  #seen = 0;
  /** When there was something to send for the last time, on the clock of `performance`. */
  #sentAt = 0;
  #isBehind = false;

  constructor(response: HttpResponse, reading: ReaderDeps) {
    this.#response = response;
    this.#events = new EventResponse(response);
    this.#reading = reading;
  }

  get user(): string {
    return this.#reading.user;
  }

  /** Sends what has changed since the last look that was sent, unless that has not been read yet. */
  update(look: Look): void {
    if (!this.#reading.isAllowed()) this.#refuse();
    else if (!this.#isBehind && this.#seen < look.number) this.#send(look);
  }

  #send({ number, snapshot, alive, parts }: Look): void {
    const isFirst = this.#events.begin({});
    const changed = [...parts.values()].filter(({ since }) => since > this.#seen).map(({ event }) => event);
    const events = isFirst ? [snapshot] : changed;
    const now = performance.now();
    if (events.length === 0 && now - this.#sentAt >= this.#reading.aliveAfterMs) events.push(alive);
    if (events.length > 0) this.#sentAt = now;
    const isRead = events.map((event) => this.#events.send(event));
    this.#seen = number;
    if (isRead.includes(false)) void this.#catchUp();
  }

  /** Ends the stream; its client can ask another process. */
  close(): void {
    if (this.#events.begin({}) || this.#events.hasBegun) this.#events.close();
  }

  async #catchUp(): Promise<void> {
    this.#isBehind = true;
    // One that reads nothing for long is disconnected.
    await this.#events.drained().catch(() => undefined);
    this.#isBehind = false;
  }

  #refuse(): void {
    const failure = new Failure('unauthorized', {
      detail: 'The credentials of this stream are no longer valid.',
    });
    recordFailure(this.#response, failure);
    this.#events.begin({});
    const problem = toProblem(failure, requestIdOf(this.#response));
    this.#events.close({ event: 'error', data: JSON.stringify(problem) });
  }
}

function toLook({ queue, providers, ...rest }: Fleet, before: Look | undefined): Look {
  const number = (before?.number ?? 0) + 1;
  const toPart = (name: string, event: string, state: object): [string, Part] => {
    const data = JSON.stringify(state);
    const known = before?.parts.get(name);
    return [name, known?.event.data === data ? known : { event: { event, data }, since: number }];
  };
  const parts = new Map([
    toPart('queue', 'queue', queue),
    ...providers.map((provider) => toPart(provider.provider, 'provider', provider)),
  ]);
  const snapshot = { event: 'snapshot', data: JSON.stringify({ ...rest, queue, providers }) };
  const alive = { event: 'alive', data: JSON.stringify({ at: rest.at }) };
  return { number, snapshot, alive, parts };
}
