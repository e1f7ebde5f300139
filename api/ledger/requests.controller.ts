import {
  Controller,
  Get,
  Middlewares,
  Path,
  Queries,
  Request,
  Response,
  Route,
  Security,
  SuccessResponse,
} from '@tsoa/runtime';
import type { Database } from '../../db/database/client.js';
import { findRequest, listRequests, toChatId } from '../../db/ledger/read.js';
import type { Problem } from '../../shared/contracts/contract.js';
import type { LedgerRequest, RequestDetails, RequestPage } from '../../shared/contracts/ledger.js';
import { Failure } from '../../shared/failures.js';
import type { AuthenticatedRequest } from '../access/caller.js';
import { checkQuery, defaultLimit, isUuid } from '../http/query.js';
import { type RequestQuery, requestQuery, sendCsv } from './ledger-query.js';

/** A chat whose job waits or runs. */
export interface UnfinishedChat {
  readonly state: 'waiting' | 'running';
  readonly job: NonNullable<RequestDetails['job']>;
}

/** The dependencies of the operations on requests. */
export interface RequestsControllerDeps {
  database: Pick<Database, 'run'>;
  findUnfinished(id: string): Promise<UnfinishedChat | undefined>;
}

@Route('admin/requests')
@Security('admin')
@Response<Problem, { 'Retry-After': string }>('503', 'Overloaded, or the database is unavailable')
export class RequestsController extends Controller {
  constructor(private readonly deps: RequestsControllerDeps) {
    super();
  }

  /**
   * The chats that have ended, the last first, without their texts; those that were refused before they were queued
   * included. A row is there about a second after its end, for `LEDGER_DAYS`. With `token`, `provider`, `model`, `api`
   * or a `result` other than `failed`, and without an id or `session`, a page looks through seven days: it may be short
   * or empty and still have a `next`.
   *
   * @summary List requests
   */
  @Get()
  @Middlewares(checkQuery(requestQuery))
  @SuccessResponse<{ Link?: string }>('200', 'One page of requests', ['application/json', 'text/csv'])
  async listRequests(
    @Request() request: AuthenticatedRequest,
    @Queries() query: RequestQuery,
  ): Promise<RequestPage> {
    const { limit = defaultLimit, from, to, format, ...filter } = query;
    const timeOf = (text: string | undefined) => (text === undefined ? undefined : new Date(text));
    const page = await listRequests(this.deps.database, {
      ...filter,
      limit: Number(limit),
      from: timeOf(from),
      to: timeOf(to),
    });
    if (format === 'csv') sendCsv(request, page.data.map(toRow), page.next);
    return page;
  }

  /**
   * With its attempts and the calls of its providers; of one that has not ended, who asked for what. A request that was
   * given the chat of another, by its `Idempotency-Key`, is that chat.
   *
   * @summary Get a request
   * @param id Its `X-Request-Id`, or the id of its chat completion.
   */
  @Get('{id}')
  @SuccessResponse('200', 'The request', 'application/json')
  @Response<Problem>('404', 'No such request, or one that leaves no row')
  async getRequest(@Path() id: string): Promise<RequestDetails> {
    const asked = toChatId(id);
    if (!isUuid(asked)) throw unknownRequest();
    const { chat, ended } = await findRequest(this.deps.database, asked);
    if (ended !== undefined) return ended;
    const unfinished = await this.deps.findUnfinished(chat);
    if (unfinished === undefined) throw unknownRequest();
    const askedFor = chat === asked ? null : asked;
    return { ...unfinished, askedFor, request: null, attempts: [], calls: [] };
  }
}

const toRow = ({ error, tokens, ...request }: LedgerRequest) => ({
  ...request,
  errorStatus: error?.status,
  errorType: error?.type,
  errorPlace: error?.place,
  ...tokens,
});

const unknownRequest = () =>
  new Failure('not_found', {
    detail:
      'No request has this id. A request leaves no row if it was refused for its credentials, its body or the limits of its user, or was only answered again; of refusals before the queue 20 a second are kept, and all rows for LEDGER_DAYS. A row is there about a second after the end.',
  });
