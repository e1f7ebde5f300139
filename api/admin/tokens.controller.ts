import {
  Body,
  Controller,
  Delete,
  Get,
  Middlewares,
  Path,
  Post,
  Queries,
  Request,
  Response,
  Route,
  Security,
  SuccessResponse,
} from '@tsoa/runtime';
import { createTokenStore } from '../../db/access/tokens.js';
import { createUserStore } from '../../db/access/users.js';
import type { NewToken, TokenInput, TokenPage } from '../../shared/contracts/accounts.js';
import { type Problem, scopes } from '../../shared/contracts/contract.js';
import { digestOf, makeAccessToken } from '../../shared/credential-forms.js';
import { Failure } from '../../shared/failures.js';
import { invalid } from '../../shared/validation.js';
import type { AuthenticatedRequest } from '../access/caller.js';
import { checkBody, readJsonBody } from '../http/json-body.js';
import { checkQuery, checkUuidParam, defaultLimit } from '../http/query.js';
import { type TokenQuery, tokenInput, tokenQuery, toPage } from './account-input.js';
import type { AccountsDeps } from './users.controller.js';

/** The days that a token is valid unless its creator says otherwise; the command line has the same. */
const defaultDays = 90;
const dayMs = 86_400_000;

const needsOperator = 'must be a user with the role admin, because the token has the scope admin';

@Route('admin/tokens')
@Security('admin')
@Response<Problem, { 'Retry-After': string }>('503', 'Overloaded, or the database is unavailable')
export class TokensController extends Controller {
  constructor(private readonly deps: AccountsDeps) {
    super();
  }

  /**
   * Newest first, with those that have expired or were revoked; those that the environment names are not among them.
   *
   * @summary List access tokens
   */
  @Get()
  @Middlewares(checkQuery(tokenQuery))
  @SuccessResponse('200', 'One page of access tokens', 'application/json')
  async listTokens(@Queries() query: TokenQuery): Promise<TokenPage> {
    const { limit = defaultLimit, before } = query;
    const tokens = await createTokenStore(this.deps.database).listNewest({ before, limit: limit + 1 });
    return toPage(tokens, limit, ({ id }) => id);
  }

  /**
   * The token is in this answer and nowhere else. One with the scope `admin` needs an owner with the role `admin`.
   *
   * @summary Make an access token
   */
  @Post()
  @Middlewares(readJsonBody, checkBody(tokenInput))
  @SuccessResponse('201', 'The token', 'application/json')
  async createToken(@Request() request: AuthenticatedRequest, @Body() body: TokenInput): Promise<NewToken> {
    const { owner, name, expiresInDays = defaultDays } = body;
    if (body.scopes.includes('admin') && !(await this.#isOperator(owner)))
      throw invalid('/owner', needsOperator);
    const token = makeAccessToken();
    const info = await createTokenStore(this.deps.database, request.user.name).create({
      owner,
      name,
      scopes: scopes.filter((scope) => body.scopes.includes(scope)),
      expiresAt: expiresInDays === null ? undefined : new Date(Date.now() + expiresInDays * dayMs),
      secretHash: digestOf(token),
    });
    await this.deps.reloadAccounts();
    return { token, info };
  }

  /**
   * At once and for good. A token that is revoked already stays so.
   *
   * @summary Revoke an access token
   * @param id Id of the token.
   */
  @Delete('{id}')
  @Middlewares(checkUuidParam)
  @SuccessResponse('204', 'The token is revoked')
  @Response<Problem>('404', 'No such token')
  async revokeToken(@Request() request: AuthenticatedRequest, @Path() id: string): Promise<void> {
    const isKnown = await createTokenStore(this.deps.database, request.user.name).revoke(id);
    if (!isKnown) throw new Failure('not_found');
    await this.deps.reloadAccounts();
  }

  async #isOperator(name: string): Promise<boolean> {
    const { database, environmentUsers } = this.deps;
    const stored = await createUserStore(database).list({ names: [name] });
    return [...environmentUsers, ...stored].some((user) => user.name === name && user.role === 'admin');
  }
}
