import { EventEmitter, on } from 'node:events';
import type { ProviderId } from '../../shared/contracts/contract.js';
import { Call, type CallContent, type CallEnd, type CallFacts } from './call.js';

/** Which calls to list. */
export interface CallFilter {
  readonly model?: string | undefined;
  /** Only calls with a greater id; absent means all. */
  readonly since?: number | undefined;
}

/** Whether the call matches the filter. */
export function matches(call: Call, { model, since = 0 }: CallFilter): boolean {
  return call.id > since && (model === undefined || call.model === model);
}

const defaultLimits = { calls: 10_000, bodyBytes: 64 * 1024 * 1024 };

/** The newest calls, in a ring so that the memory of a benchmark is bounded, and counts of all calls. */
export class CallLog {
  readonly #limits: typeof defaultLimits;
  readonly #events = new EventEmitter<{ recorded: [Call]; closed: [Call] }>().setMaxListeners(0);
  readonly #counts = new CallCounts();
  readonly #ring: (Call | undefined)[];
  #lastId = 0;
  #lastPlace = 0;
  #bodyBytes = 0;
  #oldestBodyId = 1;

  constructor(limits = defaultLimits) {
    this.#limits = limits;
    this.#ring = new Array<Call | undefined>(limits.calls).fill(undefined);
  }

  /** The id of the newest call; 0 before the first. */
  get lastId(): number {
    return this.#lastId;
  }

  get inFlight(): number {
    return this.#counts.inFlight;
  }

  /** Records a call whose request has just been read. */
  record(facts: CallFacts, content: CallContent): Call {
    this.#lastId += 1;
    const call = new Call({ id: this.#lastId, begun: this.#nextPlace() }, facts, content);
    this.#dropBody(this.#at(call.id));
    this.#ring[call.id % this.#limits.calls] = call;
    this.#bodyBytes += content.bytes;
    this.#dropOldBodies();
    this.#counts.begin(facts.provider);
    this.#events.emit('recorded', call);
    return call;
  }

  close(call: Call, end: CallEnd): void {
    call.close(end, this.#nextPlace());
    this.#counts.end(call.provider);
    this.#events.emit('closed', call);
  }

  /** The stored calls that match the filter, oldest first. */
  list(filter: CallFilter = {}): Call[] {
    const found: Call[] = [];
    for (let id = this.#oldestId; id <= this.#lastId; id += 1) {
      const call = this.#at(id);
      if (call !== undefined && matches(call, filter)) found.push(call);
    }
    return found;
  }

  /** The oldest stored call that matches, or else the next one. Rejects when the signal aborts. */
  waitFor(predicate: (call: Call) => boolean, signal?: AbortSignal): Promise<Call> {
    return this.#waitFor('recorded', predicate, signal);
  }

  /** As `waitFor`, for a call that is closed. */
  waitForClosed(predicate: (call: Call) => boolean, signal?: AbortSignal): Promise<Call> {
    return this.#waitFor('closed', (call) => call.closedAt !== undefined && predicate(call), signal);
  }

  /** Drops the calls and the counts; ids, and the numbers of begins and ends, continue. */
  clear(): void {
    this.#counts.clear();
    this.#ring.fill(undefined);
    this.#bodyBytes = 0;
  }

  /** Counts since the start or the last `clear`, per provider. */
  stats(): object {
    return {
      lastId: this.#lastId,
      kept: this.list().length,
      keptBodyBytes: this.#bodyBytes,
      providers: this.#counts,
    };
  }

  async #waitFor(
    event: 'recorded' | 'closed',
    predicate: (call: Call) => boolean,
    signal?: AbortSignal,
  ): Promise<Call> {
    const past = this.list().find(predicate);
    if (past !== undefined) return past;
    for await (const [call] of on(this.#events, event, { ...(signal && { signal }) }))
      if (predicate(call)) return call;
    throw new TypeError('events do not end');
  }

  #nextPlace(): number {
    this.#lastPlace += 1;
    return this.#lastPlace;
  }

  get #oldestId(): number {
    return Math.max(1, this.#lastId - this.#limits.calls + 1);
  }

  #at(id: number): Call | undefined {
    return this.#ring[id % this.#limits.calls];
  }

  #dropOldBodies(): void {
    let id = Math.max(this.#oldestBodyId, this.#oldestId);
    for (; this.#bodyBytes > this.#limits.bodyBytes && id < this.#lastId; id += 1)
      this.#dropBody(this.#at(id));
    this.#oldestBodyId = id;
  }

  #dropBody(call: Call | undefined): void {
    this.#bodyBytes -= call?.content?.bytes ?? 0;
    if (call !== undefined) call.content = undefined;
  }
}

const none = { total: 0, inFlight: 0, peakInFlight: 0 };

/** Counts calls per provider, and how many were in flight at once. */
class CallCounts {
  readonly #providers = new Map<ProviderId, typeof none>();

  get inFlight(): number {
    return [...this.#providers.values()].reduce((sum, { inFlight }) => sum + inFlight, 0);
  }

  begin(provider: ProviderId): void {
    const { total, inFlight, peakInFlight } = this.#of(provider);
    const peak = Math.max(peakInFlight, inFlight + 1);
    this.#providers.set(provider, { total: total + 1, inFlight: inFlight + 1, peakInFlight: peak });
  }

  end(provider: ProviderId): void {
    const counts = this.#of(provider);
    this.#providers.set(provider, { ...counts, inFlight: counts.inFlight - 1 });
  }

  /** Resets the counts to zero; calls in flight remain counted as such. */
  clear(): void {
    for (const [provider, { inFlight }] of this.#providers)
      this.#providers.set(provider, { total: 0, inFlight, peakInFlight: inFlight });
  }

  toJSON(): object {
    return Object.fromEntries(this.#providers);
  }

  #of(provider: ProviderId): typeof none {
    return this.#providers.get(provider) ?? none;
  }
}
