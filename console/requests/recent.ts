import { signal } from '@preact/signals';
import type { RecentRequest, RecentRequests } from '../../shared/history.ts';
import { call } from '../api.ts';
import { onEvent } from '../store.ts';

/** Which chats are wanted; an empty text means all. */
export interface RequestFilter {
  readonly id: string;
  readonly provider: string;
  readonly code: string;
  readonly user: string;
}

/** Chats that are shown. */
export const maxShown = 200;

/** What the view shows: the list, and of whom it is. */
export interface RequestList extends Pick<RecentRequests, 'processes' | 'isPartial'> {
  readonly requests: readonly RecentRequest[];
}

/** As the API takes it. */
export function queryOf({ id, provider, code, user }: RequestFilter): string {
  const query = new URLSearchParams({ limit: String(maxShown) });
  if (id.trim()) query.set('id', id.trim());
  if (provider) query.set('provider', provider);
  if (code) query.set('code', code);
  if (user.trim()) query.set('user', user.trim());
  return query.toString();
}

/** Whether the chat is wanted. */
export const isWanted = (
  { id, provider, code, user }: RequestFilter,
  request: Pick<RecentRequest, 'id' | 'provider' | 'code' | 'user'>,
): boolean =>
  (!id.trim() || id.trim() === request.id) &&
  (!provider || provider === request.provider) &&
  (!code || code === request.code) &&
  (!user.trim() || user.trim() === request.user);

/** The list with one more, unless it is there already. */
export const addRequest = (
  before: readonly RecentRequest[],
  request: RecentRequest,
): readonly RecentRequest[] =>
  before.some(({ id }) => id === request.id) ? before : [request, ...before].slice(0, maxShown);

/** The last chats that fit a filter, read once and then followed, until `stop`. */
export class RecentChats {
  readonly list = signal<RequestList | undefined>(undefined);
  readonly error = signal<unknown>(undefined);
  readonly #filter: RequestFilter;
  readonly #stopping = new AbortController();
  readonly #ends: (() => void)[];
  #isReading = false;
  /** Whether something was missed that the read under way may not tell. */
  #isDue = false;
  /** What has ended while the list is read, newest first: its answer may be older. */
  #meanwhile: readonly RecentRequest[] = [];

  constructor(filter: RequestFilter) {
    this.#filter = filter;
    this.#ends = [
      onEvent('request', (data) => this.#onRequest(data as RecentRequest)),
      // After a break, and when more have ended than were sent.
      onEvent('missed', () => void this.read()),
      onEvent('snapshot', () => void this.read()),
    ];
    void this.read();
  }

  stop(): void {
    this.#stopping.abort();
    for (const end of this.#ends) end();
  }

  /** Reads the list, once more if it is being read already. */
  async read(): Promise<void> {
    this.#isDue = true;
    if (this.#isReading) return;
    this.#isReading = true;
    while (this.#isDue && !this.#stopping.signal.aborted) {
      this.#isDue = false;
      await this.#readOnce();
    }
    this.#isReading = false;
  }

  async #readOnce(): Promise<void> {
    const { signal } = this.#stopping;
    this.#meanwhile = [];
    try {
      const { body } = await call<RecentRequests>(`/admin/requests?${queryOf(this.#filter)}`, { signal });
      this.list.value = { ...body, requests: this.#meanwhile.reduceRight(addRequest, body.requests) };
      this.error.value = undefined;
    } catch (error) {
      if (!signal.aborted) this.error.value = error;
    }
  }

  #onRequest(request: RecentRequest): void {
    if (!isWanted(this.#filter, request)) return;
    if (this.#isReading) this.#meanwhile = addRequest(this.#meanwhile, request);
    const known = this.list.value;
    if (known) this.list.value = { ...known, requests: addRequest(known.requests, request) };
  }
}
