import {
  Controller,
  Get,
  Middlewares,
  OperationId,
  Produces,
  Queries,
  Response,
  Route,
  Security,
  SuccessResponse,
  Tags,
} from '@tsoa/runtime';
import type { Problem } from '../../shared/contract.js';
import type { RecentRequests } from '../../shared/history.js';
import { checkQuery } from '../http/query.js';
import type { History } from './history/history.js';
import { defaultLimit, type RequestQuery, requestQuery } from './history/history-query.js';

/** What the operations on the recent past need of the application. */
export interface HistoryControllerDeps {
  history: Pick<History, 'readRequests' | 'readSamples'>;
}

@Route('admin/requests')
@Tags('admin')
@Security('admin')
@Produces('application/problem+json')
@Response<Problem>('400', 'Bad request')
@Response<Problem, { 'WWW-Authenticate': string }>('401', 'No or wrong credentials')
@Response<Problem, { 'WWW-Authenticate': string }>('403', 'The token lacks the scope admin')
@Response<Problem, { Allow: string }>('405', 'Another method')
@Response<Problem, { 'Retry-After': string }>('429', 'Too many failed logins')
@Response<Problem, { 'Retry-After': string }>('500', 'Server error')
export class RequestsController extends Controller {
  constructor(private readonly deps: HistoryControllerDeps) {
    super();
  }

  /**
   * The last chats that ended at the API processes, those that were refused before they were queued included; none of their texts. They are
   * kept in memory, 1,000 of them, and lost with their process. A request that was refused before it was a chat, as for its body or its
   * user's limits, is not among them, nor one that was only answered again.
   *
   * @summary List the last chats
   */
  @Get()
  @OperationId('listRequests')
  @Middlewares(checkQuery(requestQuery))
  @SuccessResponse('200', 'The chats', 'application/json')
  async listRequests(@Queries() query: RequestQuery): Promise<RecentRequests> {
    const { limit = defaultLimit } = query;
    return this.deps.history.readRequests({ ...query, limit });
  }
}
