import {
  Body,
  Controller,
  Delete,
  Get,
  Middlewares,
  Path,
  Post,
  Put,
  Queries,
  Request,
  Response,
  Route,
  Security,
  SuccessResponse,
} from '@tsoa/runtime';
import { createUserStore } from '../../db/access/users.js';
import { listAudit } from '../../db/audit.js';
import type { Database } from '../../db/database/client.js';
import type {
  AuditPage,
  UserInfo,
  UserInput,
  UserPage,
  UserSecret,
} from '../../shared/contracts/accounts.js';
import type { Problem } from '../../shared/contracts/contract.js';
import { digestOf, makeUserSecret } from '../../shared/credential-forms.js';
import { Failure } from '../../shared/failures.js';
import type { AuthenticatedRequest } from '../access/caller.js';
import { checkBody, readJsonBody } from '../http/json-body.js';
import { checkQuery, defaultLimit } from '../http/query.js';
import {
  type AuditQuery,
  auditQuery,
  checkNameParam,
  toPage,
  type UserQuery,
  userInput,
  userQuery,
} from './account-input.js';

/** The dependencies of the operations on users, tokens and the audit. */
export interface AccountsDeps {
  database: Pick<Database, 'run'>;
  environmentUsers: readonly UserInfo[];
  /** Resolves when this process knows of a change; the others hear of it within moments. Never rejects. */
  reloadAccounts(): Promise<void>;
}

@Route('admin/users')
@Security('admin')
@Response<Problem, { 'Retry-After': string }>('503', 'Overloaded, or the database is unavailable')
export class UsersController extends Controller {
  constructor(private readonly deps: AccountsDeps) {
    super();
  }

  /**
   * The users that the environment names come first; after them those of the database by name, page by page.
   *
   * @summary List users
   */
  @Get()
  @Middlewares(checkQuery(userQuery))
  @SuccessResponse('200', 'One page of users', 'application/json')
  async listUsers(@Queries() query: UserQuery): Promise<UserPage> {
    const { limit = defaultLimit, after } = query;
    const { environmentUsers, database } = this.deps;
    const store = createUserStore(database);
    const names = environmentUsers.map(({ name }) => name);
    const page = toPage(await store.list({ after, limit: limit + 1 }), limit, ({ name }) => name);
    const data = page.data.filter(({ name }) => !names.includes(name));
    if (after !== undefined || names.length === 0) return { ...page, data };
    const stored = await store.list({ names });
    const named = environmentUsers.map((user) => withStored(user, stored));
    return { ...page, data: [...named, ...data] };
  }

  /**
   * The secret is in this answer and nowhere else. A user of this name who has only tokens gets it, and the role.
   *
   * @summary Add a user
   */
  @Post()
  @Middlewares(readJsonBody, checkBody(userInput))
  @SuccessResponse('201', 'The user, with the secret', 'application/json')
  @Response<Problem>('409', 'There is a user of this name who has a secret')
  async createUser(@Request() request: AuthenticatedRequest, @Body() body: UserInput): Promise<UserSecret> {
    const { name, role = 'user' } = body;
    const secret = makeUserSecret();
    const users = createUserStore(this.deps.database, request.user.name);
    const id = await users.add({ name, role, secretHash: digestOf(secret) });
    if (id === undefined) throw new Failure('name_taken');
    await this.deps.reloadAccounts();
    return { id, name, secret };
  }

  /**
   * Also revokes the user's access tokens and ends the user's sessions. Operators cannot remove their own user.
   *
   * @summary Remove a user
   * @param name Name of the user.
   */
  @Delete('{name}')
  @Middlewares(checkNameParam)
  @SuccessResponse('204', 'The user is removed')
  @Response<Problem>('404', 'No such user')
  @Response<Problem>('409', "The caller's own user")
  async removeUser(@Request() request: AuthenticatedRequest, @Path() name: string): Promise<void> {
    // So one operator always remains who can create others. The command line has no such check: it can undo removals by
    // two operators who removed each other at once.
    if (name === request.user.name) throw new Failure('own_user');
    const { removed } = await createUserStore(this.deps.database, request.user.name).remove(name);
    if (!removed) throw new Failure('not_found');
    await this.deps.reloadAccounts();
  }

  /**
   * Answers every request of the user with 403 `suspended` from now on, ends the requests and streams that run and the
   * sessions, and cancels the stored chats. Operators cannot suspend their own user.
   *
   * @summary Suspend a user
   * @param name Name of the user.
   */
  @Put('{name}/suspension')
  @Middlewares(checkNameParam)
  @SuccessResponse('204', 'The user is suspended')
  @Response<Problem>('404', 'No such user')
  @Response<Problem>('409', "The caller's own user")
  async suspendUser(@Request() request: AuthenticatedRequest, @Path() name: string): Promise<void> {
    if (name === request.user.name) throw new Failure('own_user');
    await this.#setSuspended(request, name, true);
  }

  /**
   * The secret and the tokens are as they were; does nothing to a user who is not suspended.
   *
   * @summary Resume a user
   * @param name Name of the user.
   */
  @Delete('{name}/suspension')
  @Middlewares(checkNameParam)
  @SuccessResponse('204', 'The user is not suspended')
  @Response<Problem>('404', 'No such user')
  async resumeUser(@Request() request: AuthenticatedRequest, @Path() name: string): Promise<void> {
    await this.#setSuspended(request, name, false);
  }

  /**
   * Gives the user a new secret, ends the validity of the old one, and ends the user's sessions. The secret
   * is in this answer and nowhere else.
   *
   * @summary Reset the secret of a user
   * @param name Name of the user.
   */
  @Post('{name}/secret')
  @Middlewares(checkNameParam)
  @SuccessResponse('200', 'The user, with the new secret', 'application/json')
  @Response<Problem>('404', 'No such user')
  async resetSecret(@Request() request: AuthenticatedRequest, @Path() name: string): Promise<UserSecret> {
    const secret = makeUserSecret();
    const users = createUserStore(this.deps.database, request.user.name);
    const id = await users.resetSecret(name, digestOf(secret));
    if (id === undefined) throw new Failure('not_found');
    await this.deps.reloadAccounts();
    return { id, name, secret };
  }

  async #setSuspended({ user }: AuthenticatedRequest, name: string, isSuspended: boolean): Promise<void> {
    const isThere = await createUserStore(this.deps.database, user.name).setSuspended(name, isSuspended);
    if (!isThere) throw new Failure('not_found');
    await this.deps.reloadAccounts();
  }
}

/** A user that the environment names, with what the database knows of the same user: either secret counts. */
function withStored(user: UserInfo, users: readonly UserInfo[]): UserInfo {
  const stored = users.find(({ name }) => name === user.name);
  if (stored === undefined) return { ...user, source: 'environment' };
  const { hasSecret, role } = user;
  return {
    ...stored,
    hasSecret: hasSecret || stored.hasSecret,
    role: role === 'admin' ? role : stored.role,
    source: 'both',
  };
}

@Route('admin/audit')
@Security('admin')
@Response<Problem, { 'Retry-After': string }>('503', 'The database is unavailable')
export class AuditController extends Controller {
  constructor(private readonly deps: { database: Pick<Database, 'run'> }) {
    super();
  }

  /**
   * Changes of users, tokens and settings, newest first: the time, the operator, and for settings the values before and
   * after. It is kept for `AUDIT_DAYS`.
   *
   * @summary List what operators have done
   */
  @Get()
  @Middlewares(checkQuery(auditQuery))
  @SuccessResponse('200', 'One page of the audit', 'application/json')
  async listAudit(@Queries() query: AuditQuery): Promise<AuditPage> {
    const { limit = defaultLimit } = query;
    const entries = await listAudit(this.deps.database, { ...query, limit: limit + 1 });
    return toPage(entries, limit, ({ id }) => id);
  }
}
