import type { ProviderId } from '../../shared/contract.js';
import type { JobOwner } from '../../shared/fleet/live-pools.js';
import {
  levelOfNth,
  maxShareLevel,
  type ShareLevel,
  type WaitingByLevel,
} from '../../shared/queue/priority.js';
import { Tally } from '../../shared/runtime/tally.js';

/** A job that is counted as outstanding until it is released. */
export interface CountedJob {
  readonly level: ShareLevel;
  /** To be called once by each who had the job counted, when the job has settled or its request leaves it. */
  readonly release: () => void;
}

interface OutstandingJob {
  owner: JobOwner;
  readonly level: ShareLevel;
  /** How many have had it counted and not released it. */
  holders: number;
}

interface Share {
  jobs: number;
  /** Of the user's latest job. */
  level: ShareLevel;
}

/**
 * A user's level falls only when a quarter of the jobs is left: if it fell with each job that ends, the user's new jobs would
 * overtake the older ones.
 */
const levelsBeforeReturn = 2;

/** The jobs that this API process has added and that have not settled, queued and running: the basis of fair shares. */
export class UserShares {
  readonly #jobs = new Map<string, OutstandingJob>();
  readonly #shares = new Map<string, Share>();
  /** How many jobs are outstanding, by provider, kind and level. */
  readonly #counts = new Tally();

  nextLevel(owner: JobOwner): ShareLevel {
    const share = this.#shares.get(keyOf(owner));
    if (share === undefined) return 0;
    const level = levelOfNth(share.jobs + 1);
    const isNear = level < share.level && share.level - level < levelsBeforeReturn;
    return isNear ? share.level : level;
  }

  /** Counts a job as outstanding; one that several requests wait for counts once, until the last of them releases it. */
  add(jobId: string, owner: JobOwner): CountedJob {
    const job = this.#jobs.get(jobId) ?? this.#begin(jobId, owner);
    job.holders += 1;
    return { level: job.level, release: () => this.#release(jobId, job) };
  }

  /** Counts a job at this provider, which its chat was passed on to; its level, and so its priority, stays. */
  move(jobId: string, provider: ProviderId): void {
    const job = this.#jobs.get(jobId);
    if (job === undefined || job.owner.provider === provider) return;
    this.#leaveShare(job);
    job.owner = { ...job.owner, provider };
    this.#enterShare(job);
  }

  /** How many jobs of a provider are outstanding, by their level. */
  of(provider: ProviderId): WaitingByLevel {
    return { waitedFor: this.#levelsOf(provider, false), async: this.#levelsOf(provider, true) };
  }

  #begin(jobId: string, owner: JobOwner): OutstandingJob {
    const job = { owner, level: this.nextLevel(owner), holders: 0 };
    this.#enterShare(job);
    this.#jobs.set(jobId, job);
    return job;
  }

  #release(jobId: string, job: OutstandingJob): void {
    job.holders -= 1;
    if (job.holders > 0) return;
    this.#jobs.delete(jobId);
    this.#leaveShare(job);
  }

  #enterShare({ owner, level }: OutstandingJob): void {
    const key = keyOf(owner);
    const jobs = (this.#shares.get(key)?.jobs ?? 0) + 1;
    this.#shares.set(key, { jobs, level });
    this.#count(owner, level, 1);
  }

  #leaveShare({ owner, level }: OutstandingJob): void {
    const key = keyOf(owner);
    const share = this.#shares.get(key);
    // A user without outstanding jobs takes up no memory.
    if (share === undefined || share.jobs <= 1) this.#shares.delete(key);
    else share.jobs -= 1;
    this.#count(owner, level, -1);
  }

  #count({ provider, isAsync }: JobOwner, level: ShareLevel, change: number): void {
    this.#counts.add(`${provider} ${isAsync} ${level}`, change);
  }

  #levelsOf(provider: ProviderId, isAsync: boolean): number[] {
    return levels.map((level) => this.#counts.of(`${provider} ${isAsync} ${level}`));
  }
}

const levels = Array.from({ length: maxShareLevel + 1 }, (_, level) => level);

/** A user's id may be any text, and stands last. */
const keyOf = ({ provider, user, isAsync }: JobOwner): string => `${provider} ${isAsync} ${user}`;
