import type { ProviderId } from '../../../shared/contracts/contract.js';
import type { RecentRequest, RequestCode } from '../../../shared/contracts/history.js';

/** A chat that has ended, and what is needed to pass it on. */
export interface EndedRequest {
  readonly request: RecentRequest;
  /** Milliseconds since the epoch, by this machine's clock. */
  readonly endedAt: number;
  /** Counts what has become known here. */
  readonly number: number;
  readonly isOwn: boolean;
}

/** Which chats are wanted; all that is absent does not matter. */
export interface RequestFilter {
  readonly id?: string | undefined;
  readonly provider?: ProviderId | undefined;
  readonly code?: RequestCode | undefined;
  readonly user?: string | undefined;
  readonly limit: number;
}

/** Chats that are kept. */
export const maxRequests = 1000;
/** So many more come before the oldest are removed: to find them takes a sort. */
const slack = 250;

/** The last chats that ended, here and, while operators look, in the other API processes. */
export class RecentRequests {
  /** By id, in the order in which they became known. */
  #requests = new Map<string, EndedRequest>();
  #last = 0;

  get last(): number {
    return this.#last;
  }

  /** A known one stays as it is: every request of a chat sees its end. */
  add(request: RecentRequest, { endedAt, isOwn }: Pick<EndedRequest, 'endedAt' | 'isOwn'>): void {
    if (this.#requests.has(request.id)) return;
    this.#last += 1;
    this.#requests.set(request.id, { request, endedAt, number: this.#last, isOwn });
    if (this.#requests.size >= maxRequests + slack) this.#trim();
  }

  /** The chats that fit, the last that ended first. */
  list({ id, provider, code, user, limit }: RequestFilter): RecentRequest[] {
    return [...this.#requests.values()]
      .filter(
        ({ request }) =>
          (id === undefined || request.id === id) &&
          (provider === undefined || request.provider === provider) &&
          (code === undefined || request.code === code) &&
          (user === undefined || request.user === user),
      )
      .sort((a, b) => b.endedAt - a.endedAt)
      .slice(0, Math.min(limit, maxRequests))
      .map(({ request }) => request);
  }

  /** The chats that became known after this number, in that order. */
  after(number: number): EndedRequest[] {
    if (number >= this.#last) return [];
    return [...this.#requests.values()].filter((ended) => ended.number > number);
  }

  /** Removes the chats of the other processes, which are no longer kept up to date. */
  forgetOthers(): void {
    for (const [id, { isOwn }] of this.#requests) if (!isOwn) this.#requests.delete(id);
  }

  #trim(): void {
    const byEnd = [...this.#requests].sort(([, a], [, b]) => b.endedAt - a.endedAt).slice(0, maxRequests);
    this.#requests = new Map(byEnd.sort(([, a], [, b]) => a.number - b.number));
  }
}
