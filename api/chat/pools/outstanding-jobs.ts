import type { ProviderId } from '../../../shared/contract.js';
import {
  levelOfNth,
  maxShareLevel,
  type ShareLevel,
  type WaitingByLevel,
} from '../../../shared/queue/priority.js';

/** Whose job, and of which kind: users' shares are kept for each provider, and apart for asynchronous chats. */
export interface JobOwner {
  readonly provider: ProviderId;
  /** Id of the user. */
  readonly user: string;
  readonly isAsync: boolean;
}

/** A job that is counted as outstanding until it is released. */
export interface CountedJob {
  readonly level: ShareLevel;
  /** To be called once, when the job has settled. */
  release(): void;
}

interface Share {
  /** The user's outstanding jobs. */
  jobs: number;
  /** Of the user's latest job. */
  level: ShareLevel;
}

type Levels = { -readonly [Kind in keyof WaitingByLevel]: number[] };

/**
 * A user's jobs keep the level until a quarter of them is left: were it to follow each job that ends, new ones would
 * overtake the user's own older ones.
 */
const levelsBeforeReturn = 2;

/** The jobs that this API process has added and that have not settled, queued and running: the basis of fair share. */
export class OutstandingJobs {
  readonly #shares = new Map<string, Share>();
  readonly #levels = new Map<ProviderId, Levels>();

  /** The level that the owner's next job would have. */
  nextLevel(owner: JobOwner): ShareLevel {
    const share = this.#shares.get(keyOf(owner));
    if (share === undefined) return 0;
    const level = levelOfNth(share.jobs + 1);
    const isNear = level < share.level && share.level - level < levelsBeforeReturn;
    return isNear ? share.level : level;
  }

  /** Counts a job as outstanding. */
  add(owner: JobOwner): CountedJob {
    const level = this.nextLevel(owner);
    const key = keyOf(owner);
    const jobs = (this.#shares.get(key)?.jobs ?? 0) + 1;
    this.#shares.set(key, { jobs, level });
    this.#count(owner, level, 1);
    return { level, release: () => this.#release(owner, level) };
  }

  /** How many there are of a provider, by their level. */
  of(provider: ProviderId): WaitingByLevel {
    return this.#levels.get(provider) ?? none;
  }

  #release(owner: JobOwner, level: ShareLevel): void {
    const key = keyOf(owner);
    const share = this.#shares.get(key);
    // Who has nothing outstanding takes up no memory.
    if (share === undefined || share.jobs <= 1) this.#shares.delete(key);
    else share.jobs -= 1;
    this.#count(owner, level, -1);
  }

  #count({ provider, isAsync }: JobOwner, level: ShareLevel, change: number): void {
    const levels = this.#levels.get(provider) ?? { waitedFor: noJobs(), async: noJobs() };
    this.#levels.set(provider, levels);
    const kind = levels[isAsync ? 'async' : 'waitedFor'];
    kind[level] = (kind[level] ?? 0) + change;
  }
}

const noJobs = (): number[] => Array<number>(maxShareLevel + 1).fill(0);
const none: WaitingByLevel = { waitedFor: noJobs(), async: noJobs() };

/** A user's id may be any text, and stands last. */
const keyOf = ({ provider, user, isAsync }: JobOwner): string => `${provider} ${isAsync} ${user}`;
