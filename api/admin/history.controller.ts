import { Controller, Get, Middlewares, Queries, Route, Security, SuccessResponse } from '@tsoa/runtime';
import type { RecentRequests, Samples } from '../../shared/contracts/history.js';
import { checkQuery, defaultLimit } from '../http/query.js';
import type { History } from './history/history.js';
import { type RequestQuery, requestQuery, type SampleQuery, sampleQuery } from './history/history-feed.js';

/** The dependencies of the operations on the recent past. */
export interface HistoryControllerDeps {
  history: Pick<History, 'readRequests' | 'readSamples'>;
}

@Route('admin')
@Security('admin')
export class HistoryController extends Controller {
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
  @Get('requests')
  @Middlewares(checkQuery(requestQuery))
  @SuccessResponse('200', 'The chats', 'application/json')
  async listRequests(@Queries() query: RequestQuery): Promise<RecentRequests> {
    const { limit = defaultLimit } = query;
    return this.deps.history.readRequests({ ...query, limit });
  }

  /**
   * Ten minutes of measurements, one every five seconds for each provider. What waits and runs is the whole fleet's;
   * arrivals, ends and times are those of the known API processes. They are kept in memory,
   * and lost with their process.
   *
   * @summary Get the measurements of the last ten minutes
   */
  @Get('samples')
  @Middlewares(checkQuery(sampleQuery))
  @SuccessResponse('200', 'The samples', 'application/json')
  async getSamples(@Queries() query: SampleQuery): Promise<Samples> {
    return this.deps.history.readSamples(query.provider);
  }
}
