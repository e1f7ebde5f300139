import { z } from 'zod';
import { type ProviderId, providerIds } from '../../../shared/contracts/contract.js';
import type { RequestCode, Sample } from '../../../shared/contracts/history.js';
import { failureCodes } from '../../../shared/failures.js';
import { text } from '../../../shared/validation.js';
import type { ServerSentEvent } from '../../http/event-response.js';
import type { RecentRequests } from './recent-requests.js';
import { sampleEveryMs } from './sample-log.js';

interface FeedDeps {
  requests: Pick<RecentRequests, 'last' | 'after'>;
  /** The latest samples, oldest first. */
  samples: () => readonly Sample[];
  touch: () => void;
  /** The time, in milliseconds since the epoch. */
  now?: () => number;
}

/** Chats of one look; a reader learns of the others by their number. */
const maxRequests = 100;
/** The wait for the other processes' measurements, in milliseconds after the end of a sample. */
const settledMs = 2000;

/** The events one client has not received yet: ended chats and samples. Holds a cursor, not a queue. */
export class HistoryFeed {
  readonly #wanted: { requests: boolean; samples: boolean };
  readonly #deps: Required<FeedDeps>;
  /** Earlier ends are left out: the others' chats may become known only now. */
  readonly #since: number;
  #number: number;
  #sampledUntil: number;

  constructor(wanted: { requests: boolean; samples: boolean }, deps: FeedDeps) {
    this.#wanted = wanted;
    this.#deps = { now: Date.now, ...deps };
    this.#since = this.#deps.now();
    this.#number = deps.requests.last;
    this.#sampledUntil = this.#since - settledMs - sampleEveryMs;
  }

  /** The events since the last call: a `request` each, or `missed` when they are too many, and a `sample` each. */
  next(): ServerSentEvent[] {
    if (this.#wanted.requests || this.#wanted.samples) this.#deps.touch();
    return [
      ...(this.#wanted.requests ? this.#requests() : []),
      ...(this.#wanted.samples ? this.#samples() : []),
    ];
  }

  #requests(): ServerSentEvent[] {
    const { requests } = this.#deps;
    const ended = requests.after(this.#number).filter(({ endedAt }) => endedAt >= this.#since);
    this.#number = requests.last;
    if (ended.length > maxRequests) return [toEvent('missed', { requests: ended.length })];
    return ended.map(({ request }) => toEvent('request', request));
  }

  #samples(): ServerSentEvent[] {
    const until = this.#deps.now() - settledMs - sampleEveryMs;
    const due = this.#deps.samples().filter(({ at }) => {
      const slot = Date.parse(at);
      return slot > this.#sampledUntil && slot <= until;
    });
    this.#sampledUntil = Math.max(this.#sampledUntil, until);
    return due.map((sample) => toEvent('sample', sample));
  }
}

const toEvent = (event: string, data: object): ServerSentEvent => ({ event, data: JSON.stringify(data) });

/** Query of `GET /admin/requests`. */
export interface RequestQuery {
  /** Only the chat with this id: the `X-Request-Id` of its request. */
  id?: string;
  /** Only chats whose request names this provider. */
  provider?: ProviderId;
  /** Only chats that ended so. */
  code?: RequestCode;
  /** Only chats of the user of this name. */
  user?: string;
  /**
   * Maximum number of chats in the answer; 1,000 are kept.
   * @isInt
   * @minimum 1
   * @maximum 1000
   * @default 100
   */
  limit?: number;
}

/** Query of `GET /admin/samples`. */
export interface SampleQuery {
  /** Only samples of this provider. */
  provider?: ProviderId;
}

/** Query of `GET /admin/events`. */
export interface EventsQuery {
  /** Additional events, as a comma list of `requests` and `samples`. */
  include?: string;
}

const codes = ['ok', 'truncated', 'blocked', 'cancelled', ...failureCodes] as const;
const provider = z.enum(providerIds);

export const requestQuery = z
  .object({
    id: text({ max: 64, blank: false }),
    provider,
    code: z.enum(codes, { error: 'must be ok, truncated, blocked, cancelled, or the code of a failure' }),
    user: text({ max: 200, blank: false }),
    limit: z.string().regex(/^([1-9]\d{0,2}|1000)$/, { error: 'must be a whole number from 1 to 1000' }),
  })
  .partial();

export const sampleQuery = z.object({ provider }).partial();

export const eventsQuery = z
  .object({
    include: z.string().regex(/^(requests|samples)(,(requests|samples))?$/, {
      error: 'must be requests, samples, or both with a comma between',
    }),
  })
  .partial();

/** The events that a reader wants besides the state of the fleet. */
export function wantedHistory({ include = '' }: EventsQuery): { requests: boolean; samples: boolean } {
  const names = new Set(include.split(','));
  return { requests: names.has('requests'), samples: names.has('samples') };
}
