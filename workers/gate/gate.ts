import { LRUCache } from 'lru-cache';
import { Failure } from '../../shared/failures.js';
import type { ModelBreaker } from '../../shared/protocol/messages.js';
import { callErrorOf } from '../providers/errors/error-classification.js';
import type { Breaker, BreakerState } from './breaker.js';
import { Breakers, type OwnBreaker, type Rule } from './breakers.js';
import { accountRule, failuresRule, limitsRule, maxAskedOfDayMs, unlimitedAfterMs } from './evidence.js';
import { type Concerns, type GateChange, type GatedCall, NotBegun, type Pass } from './gated-call.js';
import type { ImageRoom } from './image-room.js';
import { WaitingRoom } from './waiting-room.js';

export interface GateOptions {
  /** The longest call there can be, and the pause between a breaker's opening and its probe, in milliseconds. */
  times: () => { timeoutMs: number; resetMs: number };
  /** The slots of the pool. */
  concurrency: () => number;
  /** The model by default, and what callers may name besides, with patterns among them. */
  namedModels: () => readonly string[];
  /** Shared by all pools of this process; absent where there are no stored images. */
  imageRoom?: ImageRoom | undefined;
  onChange: (change: GateChange) => void;
  /** Called when the number of parked jobs has changed. */
  onParked: () => void;
  /** Called when a 429 to this pool began to hold calls. */
  publishLimit: (limit: Limit) => void;
}

/** How long a 429 holds the calls of a model. */
export interface Limit extends Concerns {
  readonly model: string;
  /** In milliseconds, from now on. */
  readonly holdMs: number;
}

/** Up to this many models that operators name are always known: the default one and 64 more. */
const maxNamed = 65;
/** Up to this many other models: callers choose the names. */
const maxOthers = 32;
/** Breakers of users, of all models together, and how long they are known without a call, in milliseconds. */
const maxOwn = 2000;
const ownMs = 3_600_000;
/** Ids of jobs that are remembered: a job that comes back does so soon. */
const maxHandedBack = 1000;

interface Model {
  readonly failures: Breakers;
  readonly limits: Breakers;
}

/**
 * Decides when a call of a pool may begin, and learns from its end: `account.fire(failures.fire(limits.fire(call)))`.
 * Until all three let it begin, it waits in the pool's `WaitingRoom`. A job whose call the account refuses goes back to
 * the queue, or to its fallback, and so does one whose first call never left, once.
 */
export class Gate {
  readonly #options: GateOptions;
  readonly #own = new LRUCache<string, OwnBreaker>({
    max: maxOwn,
    ttl: ownMs,
    updateAgeOnGet: true,
    dispose: ({ breaker }) => breaker.forget(),
  });
  readonly #account: Breakers;
  readonly #named = new Map<string, Model>();
  readonly #others = new LRUCache<string, Model>({ max: maxOthers, dispose: forget });
  readonly #room: WaitingRoom;
  readonly #handedBack = new LRUCache<string, true>({ max: maxHandedBack });
  #forced: 'open' | 'closed' | undefined;

  constructor(options: GateOptions) {
    this.#options = options;
    const { times, concurrency, imageRoom, onParked } = options;
    this.#account = this.#countFailures(accountRule(times));
    this.#room = new WaitingRoom({
      size: concurrency,
      leftMs: ({ model, user }) => Math.max(...this.#usesOf(model).map((use) => use.leftMs(user))),
      refusalOf: (call) => this.#refusalOf(call),
      imageRoom,
      onParked,
    });
  }

  /** Makes the call as soon as it may begin. Throws `NotBegun`, or why it may not begin in time. */
  async run<C extends GatedCall, T>(
    call: C,
    next: (call: C & { readonly pass: Pass }) => Promise<T>,
  ): Promise<T> {
    const { user, kind, model } = call;
    const isOpen = this.#forced === 'open' || (!this.#forced && this.#account.isOpenFor(user));
    // A refusal has shown nothing, so the repetition waits like a first call.
    const isRetryHeld = kind === 'retry' && Boolean(this.#find(model)?.failures.leftMs(user));
    if (isOpen || (isRetryHeld && !this.#forced)) throw this.#refusalOf(call);
    try {
      return await this.#room.enter(call, (onLife) => this.#make(call, onLife, next));
    } catch (error) {
      if (callErrorOf(error)?.isUnreachable && this.#mayHandBack(call)) throw new NotBegun();
      throw error;
    }
  }

  /** Holds the calls of a model for at least this long: another pool of the provider has met a 429. */
  hold({ model, user, holdMs }: Limit): void {
    this.#modelOf(model).limits.hold(user, Math.min(holdMs, maxAskedOfDayMs));
    this.#onChange({ model, user });
  }

  /** The account's breaker of all users. */
  get account(): Pick<Breaker, 'state' | 'isProbing'> {
    return this.#forced ? { state: this.#forced, isProbing: false } : this.#account.all;
  }

  /** Jobs that are here without wanting a slot. */
  get parked(): number {
    return this.#room.parked;
  }

  /** The rest of the longest hold, in milliseconds. */
  get maxHeldMs(): number {
    const held = this.describe().filter(({ state }) => state === 'limited');
    return Math.max(0, ...held.map(({ nextProbeMs }) => nextProbeMs));
  }

  get worstState(): BreakerState {
    const states = this.describe().map(({ state }) => state);
    return (['open', 'half-open'] as const).find((state) => states.includes(state)) ?? 'closed';
  }

  /** The breakers that are not closed, the account's without a model; those of all users come first. */
  describe(): ModelBreaker[] {
    if (this.#forced === 'open') return [{ model: null, state: 'open', nextProbeMs: 0, reason: 'operator' }];
    const uses = [this.#account, ...this.#models.flatMap(({ failures, limits }) => [failures, limits])];
    return [...uses.map((of) => ({ of, breaker: of.all })), ...this.#own.values()].flatMap(describe);
  }

  /** Holds all breakers closed, or that of the account open, which stops all models; ends that without a state. */
  force(state: 'open' | 'closed' | undefined): void {
    if (state === this.#forced) return;
    const before = this.account.state;
    this.#forced = state;
    for (const use of [this.#account, ...this.#models.map(({ failures }) => failures)]) use.forget();
    if (state === 'open') this.#room.refuse({});
    if (this.account.state !== before) this.#options.onChange({ state: this.account.state });
  }

  /** To be called when the number of slots has changed. */
  wake(): void {
    this.#room.wake();
  }

  /** Sends the jobs that wait here back to their queue. */
  close(): void {
    this.#room.close();
  }

  /** Ends its timers; to be called once no job is left. */
  dispose(): void {
    this.#room.dispose();
    this.#account.forget();
    for (const model of this.#models) forget(model);
  }

  #make<C extends GatedCall, T>(
    call: C,
    onLife: () => void,
    next: (call: C & { readonly pass: Pass }) => Promise<T>,
  ): Promise<T> {
    const life = Promise.withResolvers<void>();
    this.#modelOf(call.model);
    const uses = this.#usesOf(call.model);
    const pass = {
      isProbe: uses.some((use) => use.isProbedBy(call.user)),
      onLife: () => {
        onLife();
        life.resolve();
      },
    };
    const make = async () => next({ ...call, pass });
    return uses.reduceRight((inner, use) => () => use.fire(call, life.promise, inner), make)();
  }

  /** The breakers that calls of this model pass, from the outside in. */
  #usesOf(name: string): Breakers[] {
    const { failures, limits } = this.#find(name) ?? {};
    const uses = this.#forced === 'closed' ? [limits] : [this.#account, failures, limits];
    return uses.filter((use) => use !== undefined);
  }

  get #models(): Model[] {
    return [...this.#named.values(), ...this.#others.values()];
  }

  #find(name: string): Model | undefined {
    return this.#named.get(name) ?? this.#others.peek(name);
  }

  #modelOf(name: string): Model {
    const known = this.#named.get(name) ?? this.#others.get(name);
    if (known) return known;
    const model = this.#createModel(name);
    const named = this.#options.namedModels().filter((each) => !each.includes('*'));
    (named.slice(0, maxNamed).includes(name) ? this.#named : this.#others).set(name, model);
    return model;
  }

  #createModel(model: string): Model {
    const { times, publishLimit } = this.#options;
    const limits = new Breakers({
      rule: limitsRule(times),
      model,
      own: this.#own,
      onChange: (_, user, holdMs) => {
        if (holdMs !== undefined) publishLimit({ model, user, holdMs });
        this.#onChange({ model, user });
      },
    });
    return { failures: this.#countFailures(failuresRule(times), model), limits };
  }

  #countFailures(rule: Rule, model?: string): Breakers {
    return new Breakers({
      rule,
      model,
      own: this.#own,
      onChange: (state, user) => {
        if (state === 'open') this.#room.refuse({ model, user });
        if (state === 'open') this.#room.leaveSlots({ model, user });
        this.#onChange({ model, user, state });
      },
    });
  }

  #onChange(change: GateChange): void {
    this.#room.wake();
    this.#options.onChange(change);
  }

  /** Why a call is not made, by the first of the three that refuses it. */
  #refusalOf({ model, user, kind, hasFallback }: GatedCall): Error {
    const { failures, limits } = this.#find(model) ?? {};
    const isOpen = this.account.state === 'open';
    if (isOpen || this.#account.leftMs(user) > 0)
      return kind === 'first' && !hasFallback ? new NotBegun(!isOpen) : new Failure('provider_unavailable');
    const [ofFailures = 0, ofLimits = 0] = [failures, limits].map((use) => use?.leftMs(user));
    // Another call may probe for any time.
    const retryAfterMs =
      [ofFailures, ofLimits].find((ms) => ms > 0 && Number.isFinite(ms)) ?? unlimitedAfterMs;
    if (ofFailures > 0) return new Failure('provider_unavailable', { retryAfterMs, model });
    return ofLimits > 0 ? new Failure('provider_rate_limited', { retryAfterMs }) : new Failure('timeout');
  }

  /** Whether the job of a call that never left may go back to its queue, for a worker that reaches the provider. */
  #mayHandBack({ kind, hasFallback, progress, jobId }: GatedCall): boolean {
    if (kind !== 'first' || hasFallback || progress.hasBegun || this.#handedBack.has(jobId)) return false;
    this.#handedBack.set(jobId, true);
    return true;
  }
}

function forget({ failures, limits }: Model): void {
  failures.forget();
  limits.forget();
}

function describe({
  of,
  breaker,
  user,
}: Pick<OwnBreaker, 'of' | 'breaker'> & { user?: string }): ModelBreaker[] {
  const { state, reason, leftMs } = breaker;
  const { model = null, rule } = of.options;
  const facts = { model, user, nextProbeMs: Number.isFinite(leftMs) ? Math.ceil(leftMs) : 0 };
  if (rule.kind !== 'limits') return state === 'closed' ? [] : [{ ...facts, state, reason }];
  return state === 'open' ? [{ ...facts, state: 'limited', reason: 'provider_rate_limited' }] : [];
}
