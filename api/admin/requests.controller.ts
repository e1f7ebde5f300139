import { Controller, Get, Middlewares, Queries, Route, Security, SuccessResponse } from '@tsoa/runtime';
import type { RecentRequests } from '../../shared/history.js';
import { checkQuery } from '../http/query.js';
import type { History } from './history/history.js';
import { defaultLimit, type RequestQuery, requestQuery } from './history/history-query.js';

/** The dependencies of the operations on the recent past. */
export interface HistoryControllerDeps {
  history: Pick<History, 'readRequests' | 'readSamples'>;
}

@Route('admin/requests')
@Security('admin')
export class RequestsController extends Controller {
  constructor(private readonly deps: HistoryControllerDeps) {
    super();
  }

  /**
   * The last chats that ended at the API processes, those that were refused before they were queued included; none of
   * their texts. They are kept in memory, 1,000 of them, and lost with their process. A request that was refused before
   * it was a chat, as for its body or its user's limits, is not among them, nor one that was only answered again.
   *
   * @summary List the last chats
   */
  @Get()
  @Middlewares(checkQuery(requestQuery))
  @SuccessResponse('200', 'The chats', 'application/json')
  async listRequests(@Queries() query: RequestQuery): Promise<RecentRequests> {
    const { limit = defaultLimit } = query;
    return this.deps.history.readRequests({ ...query, limit });
  }
}
