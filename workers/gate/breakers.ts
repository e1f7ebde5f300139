import type { ModelBreaker } from '../../shared/protocol/messages.js';
import { type BegunCall, Breaker, type BreakerState, type BreakerTimes } from './breaker.js';
import type { AdmittedCall, EndedCall, Fault, Shown } from './gated-call.js';

interface BreakersOptions {
  times: () => BreakerTimes;
  /** Gives the evidence of a call's end. */
  samples: { take(call: EndedCall): Shown | undefined };
  /** Called with the user of a change that concerns one user alone. */
  onChange: (state: BreakerState, user?: string) => void;
}

/** Five calls of one user without an answer, or ten that show less, with no answer to any user between them. */
const maxSilence = 10;

/**
 * The breakers of a model, or of the account: one of all users, and one of the user whose call failed last, because
 * what a provider answers may be one user's doing. A failure counts for all if the one before was another user's and no
 * call was answered in between, or if another user is refused alone. A user who calls alone meets a single breaker.
 *
 * To probe for all, one call begins at a time, and beside one that takes long a call of another user. A user whose
 * probe fails first is refused alone, and the next probe is left to others: if that fails too, all are refused.
 */
export class Breakers {
  readonly #all: Breaker;
  readonly #one: Breaker;
  /** The user whose calls the breaker of one user counts. */
  #suspect: string | undefined;
  /** The user of the last failed call, if no call was answered after it that says otherwise. */
  #lastFailed: string | undefined;
  /** The weight of the suspect's calls without an answer, and the number of those of several users that show little. */
  #silence = 0;
  #faint = 0;
  /** Whether the last failed call got no answer. */
  #isSilent = false;

  constructor(private readonly options: BreakersOptions) {
    const { times, onChange } = options;
    this.#one = new Breaker({ times, onChange: (state) => onChange(state, this.#suspect) });
    this.#all = new Breaker({
      times,
      onChange: (state) => {
        this.#lastFailed = undefined;
        // Or one user's failed probes could refuse all for as long as another user was refused before.
        if (state === 'half-open') {
          this.#silence = 0;
          this.#one.close();
        }
        onChange(state);
      },
    });
  }

  /** The breaker of all users. */
  get all(): Pick<Breaker, 'state' | 'isProbing'> {
    return this.#all;
  }

  /** The worse of the two that concern this user. */
  stateFor(user: string | undefined): BreakerState {
    const all = this.#all.state;
    const one = this.#refuses(user) ? this.#one.state : 'closed';
    return all === 'closed' || one === 'open' ? one : all;
  }

  /** Whether this user is refused while others are not, and so delays none of them. */
  isAlone(user: string | undefined): boolean {
    return this.#refuses(user) && this.#all.state !== 'open';
  }

  /** Time until a call of this user may probe, in milliseconds; 0 unless failures have opened a breaker. */
  nextProbeMs(user: string | undefined): number {
    return Math.max(this.#all.nextProbeMs, this.#refuses(user) ? this.#one.nextProbeMs : 0);
  }

  /** Begins a call, which `watch` or `drop` ends; undefined if this user's may not begin now. */
  begin(user: string | undefined): BegunCall | undefined {
    const breakers = this.#refuses(user) ? [this.#all, this.#one] : [this.#all];
    const probed = breakers.filter(({ state }) => state !== 'closed');
    if (probed.some((breaker) => breaker.state === 'open' || !breaker.isFreeFor(user))) return undefined;
    const isSecond = probed.some(({ isProbing }) => isProbing);
    const begun = { user, isProbe: probed.length > 0, begunAt: performance.now(), isSecond };
    for (const breaker of probed) breaker.probe = begun;
    return begun;
  }

  /** Makes a call that has begun, and learns from its end. */
  async watch<T>(begun: BegunCall, call: AdmittedCall, next: () => Promise<T>): Promise<T> {
    try {
      const result = await next();
      this.#end(begun, call);
      return result;
    } catch (error) {
      this.#end(begun, call, error);
      throw error;
    } finally {
      this.drop(begun);
    }
  }

  /** Leaves the probe, if this call was one, to the next. */
  drop(begun: BegunCall | undefined): void {
    for (const breaker of [this.#all, this.#one]) if (breaker.probe === begun) breaker.probe = undefined;
  }

  /** The breakers that are not closed; the one of all users comes first. */
  describe(): Omit<ModelBreaker, 'model'>[] {
    return [this.#all, this.#one].flatMap((breaker) => {
      const { state, nextProbeMs, reason } = breaker;
      const user = breaker === this.#one ? this.#suspect : undefined;
      return state === 'closed' ? [] : [{ state, nextProbeMs: Math.ceil(nextProbeMs), reason, user }];
    });
  }

  /** Holds the state, independent of calls, until it is called without one. Forgets what it has counted. */
  force(state: 'open' | 'closed' | undefined): void {
    this.#all.force(state);
    this.#one.force(state && 'closed');
    this.#lastFailed = undefined;
    this.#silence = 0;
    this.#faint = 0;
  }

  dispose(): void {
    this.#all.dispose();
    this.#one.dispose();
  }

  #refuses(user: string | undefined): boolean {
    return user !== undefined && user === this.#suspect && this.#one.state !== 'closed';
  }

  #end(begun: BegunCall, { startedAt, progress }: AdmittedCall, error?: unknown): void {
    if (startedAt === undefined) return;
    const { isProbe, user } = begun;
    const tookMs = performance.now() - startedAt;
    const { isAlive, hasBegun: isReplying } = progress;
    const shown = this.options.samples.take({ isProbe, error, isAlive, isReplying, tookMs });
    if (shown?.kind === 'good' || shown?.kind === 'answer') this.#countAnswer(begun, shown.kind === 'good');
    // A call that began before a breaker opened is not counted when it ends late.
    else if (shown && (isProbe || this.stateFor(user) === 'closed')) this.#countFault(begun, shown);
  }

  #countAnswer(begun: BegunCall, isGood: boolean): void {
    // A provider that fails every call it makes still refuses what it does not make.
    if (isGood || this.#isSilent) this.#lastFailed = undefined;
    this.#silence = 0;
    this.#faint = 0;
    if (this.#one.reason === 'timeout') this.#one.close();
    if (!isGood) return;
    this.#all.record('good', begun);
    if (!this.#one.hasCounted) this.#suspectOnly(begun.user);
    if (begun.user === this.#suspect) this.#one.record('good', begun);
  }

  #countFault(begun: BegunCall, fault: Fault): void {
    const { user } = begun;
    const refused = this.#one.state === 'closed' ? undefined : this.#suspect;
    const isOthers = (other: string | undefined) => other !== undefined && other !== user;
    const isOfAll = user === undefined || fault.isCertain === true;
    const isOfSeveral = isOfAll || isOthers(refused) || isOthers(this.#lastFailed);
    if (!isOfAll) {
      this.#lastFailed = user;
      this.#isSilent = fault.kind !== 'bad';
      if (refused === undefined) this.#suspectOnly(user);
      if (user === this.#suspect) this.#countForOne(begun, fault, !isOfSeveral);
    }
    if (isOfSeveral) this.#countForAll(begun, fault);
  }

  #countForAll(begun: BegunCall, { kind, reason }: Fault): void {
    if (kind === 'faint') this.#faint += 1;
    if (kind === 'down' || this.#faint >= maxSilence) this.#all.open(reason);
    else if (kind !== 'faint') this.#all.record('bad', begun, reason);
  }

  #countForOne(begun: BegunCall, { kind, reason }: Fault, isAlone: boolean): void {
    const isFailedProbe = this.#one.probe === begun || (isAlone && this.#all.probe === begun);
    if (kind !== 'bad') this.#silence += kind === 'silent' ? 2 : 1;
    const isSilence = kind !== 'bad' && (this.#one.reason ?? 'timeout') === 'timeout';
    if (isFailedProbe || this.#silence >= maxSilence) this.#one.open(isSilence ? 'timeout' : reason);
    else if (kind === 'bad') this.#one.record('bad', begun, reason);
  }

  #suspectOnly(user: string | undefined): void {
    if (user === this.#suspect) return;
    this.#suspect = user;
    this.#silence = 0;
    this.#one.forget();
  }
}
