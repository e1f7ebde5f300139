import {
  Controller,
  Get,
  Middlewares,
  Queries,
  Request,
  Response,
  Route,
  Security,
  SuccessResponse,
} from '@tsoa/runtime';
import { daysOf, readUsage } from '../../db/ledger/usage.js';
import type { Problem } from '../../shared/contracts/contract.js';
import type { OwnUsage } from '../../shared/contracts/ledger.js';
import type { AuthenticatedRequest } from '../access/caller.js';
import { checkQuery } from '../http/query.js';
import { type DaysQuery, daysQuery } from './ledger-query.js';
import type { UsageControllerDeps } from './usage.controller.js';

@Route('usage')
@Security('chat')
@Response<Problem, { 'Retry-After': string }>('503', 'Overloaded, or the database is unavailable')
export class OwnUsageController extends Controller {
  constructor(private readonly deps: UsageControllerDeps) {
    super();
  }

  /**
   * What the caller has spent, by UTC day and model: with an access token what was spent with it, with name and secret
   * all of the user. With a token that the environment names it is all of its user, too.
   *
   * @summary Sum one's own usage
   */
  @Get()
  @Middlewares(checkQuery(daysQuery))
  @SuccessResponse('200', 'The sums', 'application/json')
  async getOwnUsage(
    @Request() request: AuthenticatedRequest,
    @Queries() query: DaysQuery,
  ): Promise<OwnUsage> {
    const { id, tokenId } = request.user;
    const own = tokenId === undefined ? { user: id } : { user: id, token: tokenId };
    const usage = await readUsage(this.deps.database, { ...daysOf(query), ...own, by: ['day', 'model'] });
    const { from, to, rows, total } = usage;
    return { from, to, of: tokenId === undefined ? 'user' : 'token', rows, total };
  }
}
