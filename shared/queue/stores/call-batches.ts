import pg from 'pg';
import type { QueryQueue } from './postgres-jobs.js';

/** The result of a call of a database function. */
export interface CallResult {
  readonly rows: Record<string, unknown>[];
}

/** The arguments of a call, in their order. */
export type CallArguments = readonly unknown[];

interface CallBatchesDeps {
  callOne(call: CallArguments): Promise<CallResult>;
  /** Makes all the calls in one transaction. */
  callAll(calls: readonly CallArguments[]): Promise<CallResult[]>;
  /** Bounds the statements under way, and how long a call waits. */
  queries: Pick<QueryQueue, 'run'>;
}

interface Waiting {
  readonly call: CallArguments;
  resolve(result: CallResult | Promise<CallResult>): void;
  reject(error: unknown): void;
}

/** Calls in one statement: bounds how long it takes, and what is done again when one of them is refused. */
const maxCalls = 50;

/**
 * Calls a function of the database. The calls of one turn of the event loop share a transaction, and so do those that
 * come while others are under way. When the server refuses one of them, none was made, and each is made by itself.
 */
export class CallBatches {
  readonly #deps: CallBatchesDeps;
  readonly #waiting = new Set<Waiting>();

  constructor(deps: CallBatchesDeps) {
    this.#deps = deps;
  }

  call(call: CallArguments): Promise<CallResult> {
    const { promise, resolve, reject } = Promise.withResolvers<CallResult>();
    const waiting = { call, resolve, reject };
    this.#waiting.add(waiting);
    const fail = (error: unknown) => this.#waiting.delete(waiting) && reject(error);
    setImmediate(() => void this.#deps.queries.run(() => this.#makeWaiting()).catch(fail));
    return promise;
  }

  /** Throws when the connection is lost. */
  async #makeWaiting(): Promise<void> {
    const calls = [...this.#waiting].slice(0, maxCalls);
    for (const waiting of calls) this.#waiting.delete(waiting);
    if (calls.length > 1) await this.#makeAll(calls);
    else await this.#makeEach(calls);
  }

  async #makeAll(calls: readonly Waiting[]): Promise<void> {
    try {
      const results = await this.#deps.callAll(calls.map(({ call }) => call));
      for (const [index, result] of results.entries()) calls[index]?.resolve(result);
    } catch (error) {
      if (error instanceof pg.DatabaseError) return await this.#makeEach(calls);
      // Whether they were made is not known.
      for (const { reject } of calls) reject(error);
      throw error;
    }
  }

  async #makeEach(calls: readonly Waiting[]): Promise<void> {
    const making = calls.map(({ call, resolve }) => {
      const result = this.#deps.callOne(call);
      resolve(result);
      return result;
    });
    await Promise.allSettled(making);
  }
}
