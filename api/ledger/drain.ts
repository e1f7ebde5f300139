import { setTimeout as delay } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { Database } from '../../db/database/client.js';
import { isRefusedRow } from '../../db/database/errors.js';
import {
  type CallRow,
  callerOf,
  type LedgerBatch,
  pricedOf,
  type RequestRow,
  type RunKey,
} from '../../db/ledger/rows.js';
import { writeLedger } from '../../db/ledger/write.js';
import type { ApiInstruments } from '../../shared/metrics/instruments.js';
import type { Prices } from '../../shared/prices/prices.js';
import { decodeEntry, type Entry } from '../../shared/protocol/entries.js';
import { isNewer } from '../../shared/protocol/version.js';
import type { OutboxEntry, QueueStore } from '../../shared/queue/queue-store.js';
import type { Log } from '../../shared/runtime/log.js';
import { closedInTime } from '../../shared/runtime/retry.js';

interface DrainDeps {
  store: Pick<QueueStore, 'outbox' | 'records' | 'now'>;
  database: Pick<Database, 'run'>;
  prices: Prices;
  metrics: Pick<ApiInstruments['metrics'], 'cost' | 'ledgerDropped'>;
  log: Log;
  /** Time between two looks at the outbox, in milliseconds. */
  everyMs?: number;
}

/** Entries of one statement: half as many after each failure, as it may have taken too long, and then more again. */
const maxBatch = 500;
/** A process that dies with the lease delays the ledger for as long. */
const leaseMs = 1000;
const leaseKey = 'lease.ledger';

/**
 * Moves the entries of the outbox to the tables of the ledger, with their costs, in one API process at a time. Two at
 * once write no call twice, as each has its key. A batch with a value that PostgreSQL refuses is halved, down to the
 * entry that it is about, which is dropped; any other error is waited for. Entries of a newer release stay for its
 * processes.
 */
export class LedgerDrain {
  readonly #deps: DrainDeps;
  readonly #stopping = new AbortController();
  readonly #warned = new LRUCache<string, true>({ max: 1000 });
  #batch = maxBatch;
  #leasedUntil = 0;
  #running: Promise<void> = Promise.resolve();

  constructor(deps: DrainDeps) {
    this.#deps = deps;
  }

  start(): this {
    this.#running = this.#run();
    return this;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await closedInTime(this.#running);
  }

  /** Moves all entries that there are, if this process may. Throws when a store is away. */
  async drain(): Promise<void> {
    let after: string | undefined;
    for (;;) {
      const limit = this.#batch;
      const read = await this.#deps.store.outbox.read({ limit, after });
      if (read.length === 0 || this.#stopping.signal.aborted || !(await this.#hasLease())) return;
      this.#batch = Math.max(1, Math.floor(limit / 2));
      await this.#move(read);
      this.#batch = Math.min(maxBatch, 2 * limit);
      if (read.length < limit) return;
      after = read.at(-1)?.id;
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    const { everyMs = 500, log } = this.#deps;
    const pause = () => delay(everyMs, true, { signal, ref: false }).catch(() => false);
    while (await pause()) await this.drain().catch((err) => log.debug({ err }, 'ledger not written'));
  }

  async #hasLease(): Promise<boolean> {
    if (performance.now() < this.#leasedUntil) return true;
    const until = performance.now() + leaseMs;
    if (!(await this.#deps.store.records.create(leaseKey, { value: '', ttlMs: leaseMs }))) return false;
    this.#leasedUntil = until;
    return true;
  }

  async #move(read: readonly OutboxEntry[]): Promise<void> {
    const { store } = this.#deps;
    const decoded = read.map(({ id, entry: text }) => ({ id, text, entry: decodeEntry(text) }));
    const entries = decoded.flatMap(({ entry }) => entry ?? []);
    const unreadable = decoded.filter(({ entry, text }) => entry === undefined && !isNewer(text));
    const refusals = await this.#write(entries);
    const done = [...decoded.filter(({ entry }) => entry !== undefined), ...unreadable];
    await store.outbox.remove(done.map(({ id }) => id));
    this.#tellDropped(unreadable.length, 'unreadable entries of the ledger dropped');
    this.#tellDropped(refusals.length, 'entries that PostgreSQL refuses dropped', refusals[0]);
  }

  /** Gives the errors of the entries that PostgreSQL refuses. */
  async #write(entries: readonly Entry[]): Promise<unknown[]> {
    if (entries.length === 0) return [];
    const { database, metrics } = this.#deps;
    try {
      const batch = toBatch(entries, (call) => this.#price(call));
      const costs = await writeLedger(database, batch);
      for (const [provider, nanoDollars] of costs) metrics.cost.inc({ provider }, Number(nanoDollars) / 1e9);
      return [];
    } catch (error) {
      if (!isRefusedRow(error)) throw error;
      if (entries.length === 1) return [error];
      const half = Math.ceil(entries.length / 2);
      const first = await this.#write(entries.slice(0, half));
      return first.concat(await this.#write(entries.slice(half)));
    }
  }

  #tellDropped(entries: number, what: string, err?: unknown): void {
    if (entries === 0) return;
    this.#deps.metrics.ledgerDropped.inc({}, entries);
    this.#deps.log.error({ entries, err }, what);
  }

  /** Warns once a day of a model that has answered, and whose price is unknown. */
  #price(call: CallRow): PriceOfCall {
    const priced = pricedOf(call);
    const cost = this.#deps.prices.costOf(priced);
    if (cost.nanoDollars !== undefined)
      return { costNanos: Number(cost.nanoDollars), priceDated: cost.dated ?? null };
    const { provider, model, at } = priced;
    const key = `${at.toISOString().slice(0, 10)} ${provider} ${model}`;
    if (call.answeredModel && !this.#warned.has(key)) {
      this.#warned.set(key, true);
      this.#deps.log.warn({ provider, model, unknown: cost.unknown }, 'the cost of a call is unknown');
    }
    return { costNanos: null, priceDated: null };
  }
}

type PriceOfCall = Pick<CallRow, 'costNanos' | 'priceDated'>;

/** The rows of some entries, each key once; no lost run stands for a run that ended with an entry of its own here. */
export function toBatch(entries: readonly Entry[], price: (call: CallRow) => PriceOfCall): LedgerBatch {
  const requests = new Map<string, RequestRow>();
  for (const row of entries.map(toRequest)) requests.set(row.chat, merge(requests.get(row.chat), row));
  const runs = entries.filter((entry) => entry.kind === 'run');
  const calls = runs.flatMap(callsOf).map((call) => ({ ...call, ...price(call) }));
  const ended = runs.filter(({ goesOn }) => !goesOn).map(runOf);
  const known = new Set([...calls, ...ended].map(runKeyOf));
  const lost = entries.flatMap((entry) => (entry.kind === 'lost' ? lostRunsOf(entry) : []));
  const all = [...calls, ...lost.filter((call) => !known.has(runKeyOf(call)))];
  return {
    requests: [...requests.values()],
    calls: [...new Map(all.map((call) => [keyOf(call), call])).values()],
    ended,
  };
}

type RunEntry = Extract<Entry, { kind: 'run' }>;
type LostEntry = Extract<Entry, { kind: 'lost' }>;

const runOf = ({ chat, attempt, addedAt, run }: RunEntry): RunKey => ({
  chat,
  attempt,
  addedAt: new Date(addedAt),
  run,
});
const runKeyOf = ({ chat, attempt, addedAt, run }: RunKey) => `${chat} ${attempt} ${Number(addedAt)} ${run}`;
const keyOf = (call: CallRow) => `${runKeyOf(call)} ${Number(call.startedAt)} ${call.call}`;

function toRequest(entry: Entry): RequestRow {
  const { chat, origin } = entry;
  const { provider, model, console = false, stream: streamed = false, stored = false } = origin;
  const asked = { chat, ...callerOf(origin), provider, model, console, streamed, stored };
  if (entry.kind === 'joined') return { ...asked, addedAt: new Date(entry.endedAt), joins: entry.joins };
  const row = { ...asked, addedAt: new Date(entry.addedAt) };
  if (entry.kind === 'left') return { ...row, leftWith: entry.code, leftAt: new Date(entry.endedAt) };
  const { end, attempt } = entry;
  if (end === undefined) return row;
  return {
    ...row,
    attempt,
    run: entry.kind === 'run' ? entry.run : entry.runs,
    code: end.code,
    workedUntil: new Date(end.endedAt),
    answeredProvider: end.provider,
    answeredModel: end.model,
    errorStatus: end.error?.status,
    errorType: end.error?.type,
    errorPlace: end.error?.place,
    attempts: end.attempts,
    waitedMs: toDuration(end.waitedMs),
    calledMs: toDuration(end.calledMs),
    firstTokenMs: toDuration(end.firstTokenMs),
  };
}

const toDuration = (ms: number | undefined): number | undefined =>
  ms === undefined ? undefined : Math.round(Math.min(Math.max(ms, 0), 2 ** 31 - 1));

/** The end of the greatest attempt and run counts, and what the first says of the caller. */
function merge(known: RequestRow | undefined, row: RequestRow): RequestRow {
  if (known === undefined) return row;
  const rankOf = ({ attempt, run }: RequestRow) => (attempt ?? 0) * 100 + (run ?? 0);
  const inOrder = rankOf(row) >= rankOf(known) ? { ...known, ...row } : { ...row, ...known };
  const { leftWith = row.leftWith, leftAt = row.leftAt } = known;
  return { ...inOrder, leftWith, leftAt, addedAt: known.addedAt < row.addedAt ? known.addedAt : row.addedAt };
}

const callsOf = (entry: RunEntry): CallRow[] =>
  entry.calls.map(({ answered, tokens, startedAt, endedAt, ...call }, n) => ({
    ...runOf(entry),
    ...callerOf(entry.origin),
    ...call,
    ...tokens,
    provider: entry.provider,
    call: n + 1,
    answeredModel: answered,
    startedAt: new Date(startedAt),
    endedAt: new Date(endedAt),
  }));

const lostRunsOf = ({ chat, origin, attempt, addedAt: at, provider, runs }: LostEntry): CallRow[] => {
  const addedAt = new Date(at);
  const counts = { input: 0, cached: 0, written: 0, writtenFor1h: 0, output: 0, thinking: 0 };
  const lost = { call: 0, kind: 'lost', known: 'lost', requests: 0, ...counts };
  const row = { chat, ...callerOf(origin), attempt, addedAt, provider, startedAt: addedAt, endedAt: addedAt };
  return Array.from({ length: runs }, (_, n) => ({ ...row, ...lost, run: n + 1 }));
};
