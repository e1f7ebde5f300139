import { EventEmitter, on } from 'node:events';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import type { Turn } from '../../shared/conversation.js';
import type { Gates } from './gates.js';
import type { Behaviour } from './model-names.js';
import type { PromptCaches } from './prompt-caches.js';
import type { CallParameters, Step, WireFormat } from './wire-format.js';

/** The facts in the head of a call. */
export interface CallFacts {
  readonly provider: ProviderId;
  /** The name that the client sent; `undefined` if it named none. */
  readonly model: string | undefined;
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly stream: boolean;
  /** Whether a credential was sent; its value is never stored. */
  readonly hasCredentials: boolean;
  /** The trace that it is a part of, if it says so. */
  readonly traceparent?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly receivedAt: number;
}

/** The content of a call: its parsed body and, if that is valid, its conversation and what else it asks. */
export interface CallContent {
  readonly body: unknown;
  readonly turns: readonly Turn[] | undefined;
  readonly parameters?: CallParameters | undefined;
  /** Size of the body on the wire. */
  readonly bytes: number;
  /** The body as it arrived. */
  readonly raw?: Buffer;
  /** All but the credentials. */
  readonly headers?: IncomingHttpHeaders;
}

/** What a valid call asks, and how it is answered. */
export interface Accepted {
  readonly turns: readonly Turn[];
  readonly parameters: CallParameters;
  readonly behaviour: Behaviour;
}

/** A valid call, and what is needed to answer it. */
export interface Exchange extends Accepted {
  readonly call: Call;
  readonly format: WireFormat;
  readonly response: ServerResponse;
  /** Calls by provider and model, for behaviours that depend on the number of a call. */
  readonly callNumbers: Map<string, number>;
  readonly gates: Gates;
  readonly caches: PromptCaches;
  /** The steps of a scripted reply. */
  readonly steps?: readonly Step[];
}

/** How a call ended: its answer was finished, or one of the two sides closed the connection. */
export type CallEnd = 'finished' | 'by-client' | 'by-simulator';

/** One recorded call. Its fields change until it is closed; times are milliseconds since the epoch. */
export class Call {
  readonly #closing = Promise.withResolvers<void>();
  /** Resolves when the answer is finished or the connection has closed. */
  readonly closed = this.#closing.promise;
  readonly provider: ProviderId;
  readonly model: string | undefined;
  status: number | undefined;
  /** The place of its end in the sequence of all begins and ends; undefined while it is open. */
  ended: number | undefined;
  finishedAt: number | undefined;
  closedAt: number | undefined;
  clientClosedFirst = false;
  /** Blocks of thinking in its conversation that count for nothing. */
  droppedThinking = 0;
  /** Whether the simulator itself is about to cut the answer. */
  cutBySimulator = false;

  constructor(
    readonly id: number,
    /** The place of its begin in the one sequence of begins and ends of calls: whole numbers that grow. */
    readonly begun: number,
    readonly facts: CallFacts,
    /** Dropped from old calls. */
    public content: CallContent | undefined,
  ) {
    this.provider = facts.provider;
    this.model = facts.model;
  }

  /** The conversation as received, if it was valid and is still stored. */
  get turns(): readonly Turn[] | undefined {
    return this.content?.turns;
  }

  get parameters(): CallParameters | undefined {
    return this.content?.parameters;
  }

  get body(): unknown {
    return this.content?.body;
  }

  /** The body as it was written. */
  get text(): string | undefined {
    return this.content?.raw?.toString();
  }

  /** The headers as they arrived, without credentials. */
  get headers(): IncomingHttpHeaders | undefined {
    return this.content?.headers;
  }

  close(end: CallEnd, place: number): void {
    this.ended = place;
    this.closedAt = Date.now();
    if (end === 'finished') this.finishedAt = this.closedAt;
    this.clientClosedFirst = end === 'by-client';
    this.#closing.resolve();
  }

  toJSON(): object {
    const { id, begun, ended = null, facts, clientClosedFirst, droppedThinking } = this;
    const { headers, turns, parameters, body, status = null, model = null } = this;
    const isoTime = (time: number | undefined) => (time === undefined ? null : new Date(time).toISOString());
    return {
      id,
      begun,
      ended,
      ...facts,
      model,
      status,
      clientClosedFirst,
      droppedThinking,
      receivedAt: isoTime(facts.receivedAt),
      finishedAt: isoTime(this.finishedAt),
      closedAt: isoTime(this.closedAt),
      headers,
      turns,
      parameters,
      body,
    };
  }
}

/** Which calls to list: those of a model, and with a greater id; absent means all. */
export interface CallFilter {
  readonly model?: string | undefined;
  readonly since?: number | undefined;
}

/** Whether the call matches the filter. */
export function matches(call: Call, { model, since = 0 }: CallFilter): boolean {
  return call.id > since && (model === undefined || call.model === model);
}

/** How many of the newest calls are kept, and how much of their bodies, so that a benchmark's memory is bounded. */
const usualLimits = { calls: 10_000, bodyBytes: 64 * 1024 * 1024 };

/** The newest calls, and counts of all calls. */
export class CallLog {
  readonly #limits: typeof usualLimits;
  readonly #events = new EventEmitter<{ recorded: [Call]; closed: [Call] }>().setMaxListeners(0);
  readonly #counts = Object.fromEntries(
    providerIds.map((id) => [id, { total: 0, inFlight: 0, peakInFlight: 0 }]),
  );
  readonly #calls = new Map<number, Call>();
  /** The calls whose bodies are kept. */
  readonly #full: Call[] = [];
  #bodyBytes = 0;
  #lastId = 0;
  #lastPlace = 0;

  constructor(limits = usualLimits) {
    this.#limits = limits;
  }

  /** The id of the newest call; 0 before the first. */
  get lastId(): number {
    return this.#lastId;
  }

  get inFlight(): number {
    return Object.values(this.#counts).reduce((sum, { inFlight }) => sum + inFlight, 0);
  }

  /** Records a call whose request has just been read. */
  record(facts: CallFacts, content: CallContent): Call {
    this.#lastId += 1;
    const call = new Call(this.#lastId, this.#nextPlace(), facts, content);
    this.#calls.set(call.id, call);
    this.#calls.delete(call.id - this.#limits.calls);
    this.#full.push(call);
    this.#bodyBytes += content.bytes;
    while (this.#bodyBytes > this.#limits.bodyBytes && this.#full.length > 1) this.#dropOldestBody();
    if (this.#full.length > this.#limits.calls) this.#dropOldestBody();
    const counts = this.#countsOf(call);
    counts.total += 1;
    counts.inFlight += 1;
    counts.peakInFlight = Math.max(counts.peakInFlight, counts.inFlight);
    this.#events.emit('recorded', call);
    return call;
  }

  close(call: Call, end: CallEnd): void {
    call.close(end, this.#nextPlace());
    this.#countsOf(call).inFlight -= 1;
    this.#events.emit('closed', call);
  }

  /** The stored calls that match the filter, oldest first. */
  list(filter: CallFilter = {}): Call[] {
    return [...this.#calls.values()].filter((call) => matches(call, filter));
  }

  /** The oldest stored call that matches, of all or of the closed ones, or else the next. Rejects if aborted. */
  async waitFor(
    predicate: (call: Call) => boolean,
    { event = 'recorded', signal }: { event?: 'recorded' | 'closed'; signal?: AbortSignal } = {},
  ): Promise<Call> {
    const calls = this.list().filter(({ closedAt }) => event === 'recorded' || closedAt !== undefined);
    const past = calls.find(predicate);
    if (past !== undefined) return past;
    for await (const [call] of on(this.#events, event, { ...(signal && { signal }) }))
      if (predicate(call)) return call;
    throw new TypeError('events do not end');
  }

  /** Drops the calls and the counts, but for those in flight; ids, and the numbers of begins and ends, continue. */
  clear(): void {
    this.#calls.clear();
    while (this.#full.length > 0) this.#dropOldestBody();
    for (const counts of Object.values(this.#counts))
      Object.assign(counts, { total: 0, peakInFlight: counts.inFlight });
  }

  /** Counts since the start or the last `clear`, per provider. */
  stats() {
    const { size: kept } = this.#calls;
    return { lastId: this.#lastId, kept, keptBodyBytes: this.#bodyBytes, providers: this.#counts };
  }

  #dropOldestBody(): void {
    const call = this.#full.shift();
    this.#bodyBytes -= call?.content?.bytes ?? 0;
    if (call) call.content = undefined;
  }

  #nextPlace(): number {
    this.#lastPlace += 1;
    return this.#lastPlace;
  }

  #countsOf({ provider }: Call) {
    return this.#counts[provider] ?? { total: 0, inFlight: 0, peakInFlight: 0 };
  }
}
