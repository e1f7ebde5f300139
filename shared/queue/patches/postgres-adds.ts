/*
 * Patch of bullmq 6.7.0: `run` of the PostgreSQL backend.
 * Gives: speed. Without this and the patches of events, signals and names a chat took 1.58, 1.70 and 1.33 times the
 * processor time (32 and 128 connections, stored chats with 32).
 * Until: BullMQ adds several jobs in one statement without temporary tables.
 */
import type { createPostgresBackend } from 'bullmq';
import { type CallArguments, CallBatches, type CallResult } from '../stores/call-batches.js';
import { QueryQueue } from '../stores/postgres-jobs.js';

/** Private parts of BullMQ's backend; a test fails when they change. */
export interface BackendCalls {
  /** The options of the worker, if it is a worker's backend. */
  readonly opts: { readonly limiter?: object };
  /** Calls a function of BullMQ's schema by the name of its command. */
  run(command: string, call?: CallArguments): Promise<CallResult>;
  query(text: string, values: unknown[]): Promise<CallResult>;
}

/**
 * Makes a backend add the jobs of one moment in one transaction: a trip, a commit and its NOTIFY, which wakes all who
 * listen, cost the server more than the job. BullMQ's own insert of many makes two temporary tables each time.
 */
export function batchAdds(backend: ReturnType<typeof createPostgresBackend>): void {
  const calls = backend as unknown as BackendCalls;
  const run = calls.run.bind(backend);
  const adds = new CallBatches({
    queries: new QueryQueue({ concurrency: maxUnderWay, silentMs }),
    callOne: (call) => run('add_job', call),
    callAll: async (all) => {
      const { rows } = await calls.query(addAll, [JSON.stringify(all)]);
      return rows.map((row) => ({ rows: [row] }));
    },
  });
  calls.run = (command, call = []) => (command === 'add_job' ? adds.call(call) : run(command, call));
}

/** Statements at once: with a second one, a statement that has to wait does not hold up all others. */
const maxUnderWay = 2;
/** The same time as for the queries of a pool. */
const silentMs = 2000;

/** The arguments of BullMQ's function, as its own command casts them. */
const types =
  'text text text jsonb jsonb integer bigint bigint integer text text text text text boolean'.split(' ');

/** The calls are a JSON array of arrays of arguments, and are made in its order. */
const addAll = `
  select add_job(${types.map((type, index) => `(call ->> ${index})::${type}`).join(', ')}) as id
  from json_array_elements($1::json) as calls (call)`;
