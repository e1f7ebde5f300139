import type { RecentRequest, RecentRequests } from '../../shared/contracts/history.ts';
import { Followed } from '../parts/followed.ts';
import { addressOf } from '../parts/paged-table.tsx';

/** Which chats are wanted, without spaces around; an empty text means all. */
export type RequestFilter = Readonly<Record<'id' | 'provider' | 'code' | 'user', string>>;

/** Chats that are shown. */
export const maxShown = 200;

const isWanted = (filter: RequestFilter, request: RecentRequest): boolean =>
  (Object.keys(filter) as (keyof RequestFilter)[]).every(
    (name) => filter[name] === '' || filter[name] === request[name],
  );

/** The list with one more, unless it is there already. */
const addRequest = (before: RecentRequest[], request: RecentRequest): RecentRequest[] =>
  before.some(({ id }) => id === request.id) ? before : [request, ...before].slice(0, maxShown);

/** The last chats that fit a filter, newest first. */
export const openRequests = (filter: RequestFilter) =>
  new Followed<RecentRequests, RecentRequest>({
    path: addressOf('/admin/requests', { limit: String(maxShown), ...filter }),
    event: 'request',
    // After a break, and when more have ended than were sent.
    again: ['snapshot', 'missed'],
    add: (known, request) =>
      isWanted(filter, request) ? { ...known, requests: addRequest(known.requests, request) } : known,
  });
