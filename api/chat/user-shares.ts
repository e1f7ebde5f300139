import { type RateLimiterAbstract, RateLimiterMemory } from 'rate-limiter-flexible';
import type { ProviderId } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import type { JobOwner } from '../../shared/fleet/live-pools.js';
import {
  type JobClass,
  levelOfNth,
  maxShareLevel,
  type ShareLevel,
  type WaitingByLevel,
} from '../../shared/queue/add-attempt.js';
import { Tally } from '../../shared/runtime/semaphore.js';
import type { BytesInFlight } from '../access/bytes-in-flight.js';
import { consume } from '../access/login-limiter.js';
import { jobOwnerOf } from './chat-command.js';
import type { LiveChat } from './live-chat.js';
import type { ChatListener } from './live-chats.js';

interface UserShareOptions {
  /** Requests that a user may have in flight; undefined means any number. */
  maxInFlight?: () => number | undefined;
  /** Requests that a user may make in a minute, which begins with a request; undefined means any number. */
  maxPerMinute?: number | undefined;
  /** Streams of stored chats that a user may come to in ten seconds; undefined means any number. */
  maxJoins?: number;
  /** Counts the bytes of each request from their arrival. */
  bytesInFlight?: Pick<BytesInFlight, 'hold'>;
}

/** A request that counts as in flight until it is disposed of. */
export interface Place extends Disposable {
  /** Counts a reader of the chat's stream that another request began; throws `rate_limited` beyond the limit. */
  readonly joinStream: () => void;
}

const jobClasses = ['ordinary', 'subagent', 'auxiliary'] as const;

/**
 * The outstanding jobs that count for a user's next one of a class, and how many it counts beside them: so a turn comes
 * before the agents that it has started, and those before what is auxiliary. Marks gain a user nothing up to level 3,
 * and beyond one level at most: up to a level there can be as many ordinary jobs as without marks, and fewer others.
 */
const countedFor: Readonly<Record<JobClass, { classes: readonly JobClass[]; more: number }>> = {
  ordinary: { classes: ['ordinary'], more: 0 },
  subagent: { classes: jobClasses, more: 8 },
  auxiliary: { classes: jobClasses, more: 32 },
};

interface CountedChat {
  owner: JobOwner;
  readonly jobClass: JobClass | undefined;
  readonly level: ShareLevel;
  isOutstanding: boolean;
  /** Gives back its bytes, and its place in flight if it has one; present while it goes on without a request. */
  release?: () => void;
}

/** A user who queues more than this many times what the pools can run at once gains nothing. */
const maxInFlightPerPlace = 10;
/** A user may have this many chats in flight however small the pools are. */
const minMaxInFlight = 100;
/** When a request in flight ends is unknown; most end soon. */
const retryAfterMs = 1000;
/** A user may read this many chats at once here that other requests have begun. */
const maxJoined = 20;
const joinWindowSeconds = 10;
const tooManyReaders = { detail: 'This user reads too many stored chats at once.', retryAfterMs };
/** A level falls only when a quarter of the jobs that count is left, so that new jobs do not overtake older ones. */
const levelsBeforeReturn = 2;

/**
 * Each user's share of this process, which counts alone: requests in flight, and outstanding chats, queued and
 * running, which are the basis of fair shares. A request that is refused because of those in flight does not count
 * towards the rate: a client that tries again every second uses up nothing.
 */
export class UserShares implements ChatListener {
  readonly #options: UserShareOptions;
  readonly #rate: RateLimiterAbstract | undefined;
  readonly #joinRate: RateLimiterAbstract | undefined;
  readonly #inFlight = new Tally();
  readonly #joined = new Tally();
  /** By user and class; `level` is that of the latest job. */
  readonly #shares = new Map<string, { jobs: number; level: ShareLevel }>();
  /** How many chats are outstanding, by provider, kind and level. */
  readonly #levels = new Tally();
  readonly #counted = new WeakMap<LiveChat, CountedChat>();

  constructor(options: UserShareOptions = {}) {
    this.#options = options;
    const { maxPerMinute, maxJoins } = options;
    if (maxPerMinute !== undefined)
      this.#rate = new RateLimiterMemory({ points: maxPerMinute, duration: 60 });
    if (maxJoins !== undefined)
      this.#joinRate = new RateLimiterMemory({ points: maxJoins, duration: joinWindowSeconds });
  }

  /** Counts a request as in flight. Throws `rate_limited` when the user has too many. */
  enter(user: string): Place {
    const maxInFlight = this.#options.maxInFlight?.() ?? Number.POSITIVE_INFINITY;
    if (this.#inFlight.of(user) >= maxInFlight) throw new Failure('rate_limited', { retryAfterMs });
    this.#inFlight.add(user, 1);
    let joined = 0;
    return {
      joinStream: () => {
        if (this.#joined.of(user) >= maxJoined) throw new Failure('rate_limited', tooManyReaders);
        joined = 1;
        this.#joined.add(user, 1);
      },
      [Symbol.dispose]: () => {
        this.#inFlight.add(user, -1);
        if (joined > 0) this.#joined.add(user, -joined);
      },
    };
  }

  /** Counts a request towards the user's rate; throws `rate_limited` beyond it. */
  async consume(user: string): Promise<void> {
    if (this.#rate) await consume(this.#rate, user);
  }

  /** Counts a request that comes to a stream which is there; throws `rate_limited` beyond the limit. */
  async consumeJoin(user: string): Promise<void> {
    if (this.#joinRate) await consume(this.#joinRate, user);
  }

  /** As `consumeJoin`, for a request that begins no chat and counts as one where requests are limited. */
  async admitReader(user: string): Promise<void> {
    await this.consumeJoin(user);
    await this.consume(user);
  }

  /** The level of the user's next chat of this class; its priority follows from it. */
  nextLevel(owner: JobOwner, jobClass: JobClass = 'ordinary'): ShareLevel {
    const { classes, more } = countedFor[jobClass];
    const jobs = classes.map((each) => this.#shares.get(keyOf(owner, each))?.jobs ?? 0);
    const level = levelOfNth(jobs.reduce((sum, count) => sum + count, more) + 1);
    const latest = this.#shares.get(keyOf(owner, jobClass))?.level ?? 0;
    const isNear = level < latest && latest - level < levelsBeforeReturn;
    return isNear ? latest : level;
  }

  /** How many chats are outstanding at a provider, by their level. */
  of(provider: ProviderId): WaitingByLevel {
    return { waitedFor: this.#levelsOf(provider, false), async: this.#levelsOf(provider, true) };
  }

  opened(chat: LiveChat): void {
    if (chat.opening === undefined) return;
    const { command, level } = chat.opening;
    const owner = jobOwnerOf(command, chat.attempt.provider);
    const counted = { owner, jobClass: command.jobClass, level, isOutstanding: true };
    this.#counted.set(chat, counted);
    this.#enterShare(counted);
  }

  /** The chat counts at the provider that it was passed on to; its level, and so its priority, stays. */
  moved(chat: LiveChat): void {
    const counted = this.#counted.get(chat);
    if (!counted?.isOutstanding || counted.owner.provider === chat.attempt.provider) return;
    this.#leaveShare(counted);
    counted.owner = { ...counted.owner, provider: chat.attempt.provider };
    this.#enterShare(counted);
  }

  /**
   * The bytes of a chat that goes on without its request count until it ends. A stored one counts as in flight for as
   * long; any other one is as good as over, but its job may still lie in the store.
   */
  detached(chat: LiveChat): void {
    const counted = this.#counted.get(chat);
    if (counted === undefined || chat.opening === undefined) return;
    counted.release?.();
    const { user, bytes } = chat.opening.command;
    const releaseBytes = this.#options.bytesInFlight?.hold(user, bytes);
    const places = chat.isStored ? 1 : 0;
    if (places === 0) this.#settle(counted);
    this.#inFlight.add(user, places);
    counted.release = () => {
      this.#inFlight.add(user, -places);
      releaseBytes?.();
    };
  }

  ended(chat: LiveChat): void {
    const counted = this.#counted.get(chat);
    if (counted === undefined) return;
    this.#settle(counted);
    counted.release?.();
  }

  #settle(counted: CountedChat): void {
    if (counted.isOutstanding) this.#leaveShare(counted);
    counted.isOutstanding = false;
  }

  #enterShare({ owner, jobClass, level }: CountedChat): void {
    const key = keyOf(owner, jobClass);
    const jobs = (this.#shares.get(key)?.jobs ?? 0) + 1;
    this.#shares.set(key, { jobs, level });
    this.#count(owner, level, 1);
  }

  #leaveShare({ owner, jobClass, level }: CountedChat): void {
    const key = keyOf(owner, jobClass);
    const share = this.#shares.get(key);
    // A user without outstanding jobs takes up no memory.
    if (share === undefined || share.jobs <= 1) this.#shares.delete(key);
    else share.jobs -= 1;
    this.#count(owner, level, -1);
  }

  #count({ provider, isAsync }: JobOwner, level: ShareLevel, change: number): void {
    this.#levels.add(`${provider} ${isAsync} ${level}`, change);
  }

  #levelsOf(provider: ProviderId, isAsync: boolean): number[] {
    return levels.map((level) => this.#levels.of(`${provider} ${isAsync} ${level}`));
  }
}

/** How many requests a user may have in flight, where the pools run so many jobs at once. */
export const maxInFlightOf = (places: number | undefined): number | undefined =>
  places === undefined ? undefined : Math.max(minMaxInFlight, places * maxInFlightPerPlace);

const levels = Array.from({ length: maxShareLevel + 1 }, (_, level) => level);

/** A user's id may be any text, and stands last. */
const keyOf = ({ provider, user, isAsync }: JobOwner, jobClass: JobClass = 'ordinary'): string =>
  `${provider} ${isAsync} ${jobClass} ${user}`;
