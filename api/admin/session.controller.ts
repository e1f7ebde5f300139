import {
  Body,
  Controller,
  Delete,
  Get,
  Middlewares,
  NoSecurity,
  Post,
  Query,
  Request,
  Response,
  Route,
  Security,
  SuccessResponse,
} from '@tsoa/runtime';
import type { CookieOptions, RequestHandler, Request as ServedRequest } from 'express';
import { z } from 'zod';
import type { UserIdentity } from '../../db/access/users.js';
import type { ConsoleSession, Problem, SignInInput } from '../../shared/contracts/contract.js';
import { invalid, text } from '../../shared/validation.js';
import { type AccessDirectory, sessionLifetimeMs } from '../access/access-directory.js';
import type { AuthenticatedRequest } from '../access/caller.js';
import { sessionCookie } from '../access/credentials.js';
import { refuseCrossOrigin, signIn } from '../access/operators.js';
import { checkBody, readShortJsonBody } from '../http/json-body.js';
import type { AccountsDeps } from './users.controller.js';

/** The dependencies of signing in and out. */
export interface SessionControllerDeps {
  sessions: Pick<AccessDirectory, 'openSession' | 'closeSession'>;
  reloadAccounts: AccountsDeps['reloadAccounts'];
}

/** The body of a sign-in. */
export const signInBody = z.strictObject({ name: text({ max: 512 }), secret: text({ max: 512 }) });

const checkEverywhere: RequestHandler = ({ query: { everywhere } }, _response, next) => {
  if (everywhere === undefined || everywhere === 'true' || everywhere === 'false') return next();
  throw invalid('everywhere', 'must be true or false');
};

/** `Secure` where the request came by TLS: a browser would not send it back otherwise. */
const cookieFor = ({ secure }: ServedRequest): CookieOptions => ({
  path: '/admin',
  httpOnly: true,
  sameSite: 'strict',
  secure,
});

@Route('admin/session')
@Security('session')
@Response<Problem, { 'WWW-Authenticate': string }>('401', 'No active session, or a wrong name or secret')
@Response<Problem, { 'WWW-Authenticate': string }>(
  '403',
  'A page of another origin asks, or the user has not the role admin',
)
@Response<Problem, { 'Retry-After': string }>('503', 'Overloaded, or the database is unavailable')
export class SessionController extends Controller {
  constructor(private readonly deps: SessionControllerDeps) {
    super();
  }

  /**
   * For 12 hours, with a cookie that is sent below `/admin` alone. Takes the name and the secret of a user with the
   * role `admin`, from a page of this server (`Sec-Fetch-Site: same-origin`, or an `Origin` with the `Host` of the
   * request).
   *
   * @summary Sign in to the console
   */
  @Post()
  @NoSecurity()
  @Middlewares(refuseCrossOrigin, readShortJsonBody, checkBody(signInBody))
  @SuccessResponse<{ 'Set-Cookie': string }>('200', 'Signed in', 'application/json')
  async signIn(@Request() request: ServedRequest, @Body() body: SignInInput): Promise<ConsoleSession> {
    const { user, secretHash } = await signIn(request, body);
    const { key, expiresAt } = await this.deps.sessions.openSession({ user, secretHash });
    request.res?.cookie(sessionCookie, key, { ...cookieFor(request), maxAge: sessionLifetimeMs });
    return toSession(user, expiresAt);
  }

  /**
   * The answer is for a session of the console; an access token is none.
   *
   * @summary Get who is signed in
   */
  @Get()
  @SuccessResponse('200', 'The session', 'application/json')
  async getSession(@Request() request: AuthenticatedRequest): Promise<ConsoleSession> {
    const { user } = request;
    if (user.session === undefined) throw new TypeError('a caller without a session');
    return toSession(user, user.session.expiresAt);
  }

  /**
   * Ends the session, at once on every API process, and the streams and chats that are attached with it; a stored chat
   * goes on.
   *
   * @summary Sign out of the console
   * @param everywhere Whether to end all sessions of the user.
   */
  @Delete()
  @Middlewares(checkEverywhere)
  @SuccessResponse<{ 'Set-Cookie': string }>('204', 'Signed out')
  async signOut(@Request() request: AuthenticatedRequest, @Query() everywhere?: boolean): Promise<void> {
    const { sessions, reloadAccounts } = this.deps;
    await sessions.closeSession(request.user, { everywhere: everywhere ?? false });
    await reloadAccounts();
    request.res?.clearCookie(sessionCookie, cookieFor(request));
  }
}

const toSession = ({ id, name }: UserIdentity, expiresAt: Date): ConsoleSession => ({
  user: { id, name },
  expiresAt: expiresAt.toISOString(),
});
