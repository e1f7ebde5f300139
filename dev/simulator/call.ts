import type { ProviderId } from '../../shared/contracts/contract.js';
import type { Turn } from '../../shared/conversation.js';
import type { CallParameters } from './exchange.js';

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
}

interface CallNumbers {
  readonly id: number;
  readonly begun: number;
}

/** How a call ended: its answer was finished, or one of the two sides closed the connection. */
export type CallEnd = 'finished' | 'by-client' | 'by-simulator';

/** One recorded call. Its fields change until it is closed; times are milliseconds since the epoch. */
export class Call {
  readonly #closing = Promise.withResolvers<void>();
  /** Resolves when the answer is finished or the connection has closed. */
  readonly closed = this.#closing.promise;
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
    private readonly numbers: CallNumbers,
    readonly facts: CallFacts,
    /** Dropped from old calls when all stored bodies are too large. */
    public content: CallContent | undefined,
  ) {}

  get id(): number {
    return this.numbers.id;
  }

  /** The place of its begin in the one sequence of begins and ends of calls: whole numbers that grow. */
  get begun(): number {
    return this.numbers.begun;
  }

  get provider(): ProviderId {
    return this.facts.provider;
  }

  get model(): string | undefined {
    return this.facts.model;
  }

  /** The conversation as received, if it was valid and is still stored. */
  get turns(): readonly Turn[] | undefined {
    return this.content?.turns;
  }

  /** The parameters of the call, if its body was valid and is still stored. */
  get parameters(): CallParameters | undefined {
    return this.content?.parameters;
  }

  /** The parsed body as received, if it is still stored. */
  get body(): unknown {
    return this.content?.body;
  }

  close(end: CallEnd, place: number): void {
    this.ended = place;
    this.closedAt = Date.now();
    if (end === 'finished') this.finishedAt = this.closedAt;
    this.clientClosedFirst = end === 'by-client';
    this.#closing.resolve();
  }

  toJSON(): object {
    const { id, begun, ended = null, facts, clientClosedFirst, turns, parameters, body } = this;
    return {
      id,
      begun,
      ended,
      ...facts,
      model: facts.model ?? null,
      status: this.status ?? null,
      receivedAt: isoTime(facts.receivedAt),
      finishedAt: isoTime(this.finishedAt),
      closedAt: isoTime(this.closedAt),
      clientClosedFirst,
      droppedThinking: this.droppedThinking,
      turns,
      parameters,
      body,
    };
  }
}

function isoTime(time: number | undefined): string | null {
  return time === undefined ? null : new Date(time).toISOString();
}
