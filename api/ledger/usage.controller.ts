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
import type { Database } from '../../db/database/client.js';
import { daysOf, readSums, readUsage, toFlatRow, type UsageKey } from '../../db/ledger/usage.js';
import type { Problem } from '../../shared/contracts/contract.js';
import type { OwnUsage, Usage } from '../../shared/contracts/ledger.js';
import type { AuthenticatedRequest } from '../access/caller.js';
import { checkQuery } from '../http/query.js';
import { type DaysQuery, daysQuery, sendCsv, type UsageQuery, usageQuery } from './ledger-query.js';

/** The dependencies of the operations on usage. */
export interface UsageControllerDeps {
  database: Pick<Database, 'run'>;
}

@Route('admin/usage')
@Security('admin')
@Response<Problem, { 'Retry-After': string }>('503', 'Overloaded, or the database is unavailable')
export class UsageController extends Controller {
  constructor(private readonly deps: UsageControllerDeps) {
    super();
  }

  /**
   * Sums of the calls of providers by UTC day, provider, model, user, access token, API or session, by two of them at
   * once too. What is unknown or estimated, and what was lost, is beside the sums: they are at least so much. By
   * session, the days are 31 at most, of the last `LEDGER_DAYS`.
   *
   * @summary Sum what was spent
   */
  @Get()
  @Middlewares(checkQuery(usageQuery))
  @SuccessResponse('200', 'The sums', ['application/json', 'text/csv'])
  async getUsage(@Request() request: AuthenticatedRequest, @Queries() query: UsageQuery): Promise<Usage> {
    const { by = 'day', format, ...filter } = query;
    const usage = await readUsage(this.deps.database, {
      ...filter,
      ...daysOf(query),
      by: [...new Set(by.split(',') as UsageKey[])],
    });
    if (format === 'csv') sendCsv(request, usage.rows.map(toFlatRow));
    return usage;
  }
}

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
    const sums = await readSums(this.deps.database, { ...daysOf(query), ...own, by: ['day', 'model'] });
    return { ...sums, of: tokenId === undefined ? 'user' : 'token' };
  }
}
