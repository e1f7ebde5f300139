import { isUtf8 } from 'node:buffer';
import type { Request } from 'express';
import type { UserIdentity } from '../../db/access/users.js';
import type { Scope } from '../../shared/contract.js';
import { Failure } from '../../shared/failures.js';
import type { Log } from '../../shared/runtime/log.js';
import { requestIdOf } from '../http/problem.js';
import type { Login, LoginLimiter } from './login-limiter.js';

/** Who is asking, once their credentials have been checked: the same user by Basic and by any of their tokens. */
export interface Caller extends UserIdentity {
  readonly scopes: readonly Scope[];
}

/** A request whose credentials have been checked; `user` is undefined for an anonymous reader. */
export type AuthenticatedRequest = Request & { readonly user?: Caller };

/** The caller of an operation that requires credentials. */
export const callerOf = ({ user }: AuthenticatedRequest): Caller => user as Caller;

/** Whether the caller may write posts, and therefore see drafts. */
export const mayWrite = ({ user }: AuthenticatedRequest): boolean =>
  user?.scopes.includes('blogs:write') ?? false;

/** What the generated routes check credentials with; they find it in `app.locals.authentication`. */
export interface Authentication {
  /** Takes the same time whether the name, the secret or neither is right. */
  checkUser(name: string, secret: string): UserIdentity | undefined;
  /** Whether there is a user of the name, so that it can be no secret. */
  userExists(name: string): boolean;
  /** Whether `checkUser` knows everybody; until then a failed check proves nothing. */
  usersLoaded(): boolean;
  checkToken(token: string): Promise<Caller | undefined>;
  loginLimiter: LoginLimiter;
  /** For Basic until the users are loaded: what fails then may be right, and shall count for nothing afterwards. */
  earlyLimiter: LoginLimiter;
  log: Log;
  /** Whether posts may be read without credentials. */
  publicReads: boolean;
}

/**
 * Called by the generated routes before anything of the request is read; what it gives becomes `request.user`, which
 * is undefined for a reader who sent no credentials and needs none. `basic` is HTTP Basic (RFC 7617, UTF-8) for chat
 * users, `bearer` an access token (RFC 6750) with all of the scopes.
 */
export async function expressAuthentication(
  request: Request,
  securityName: string,
  scopes: string[] = [],
): Promise<Caller | undefined> {
  const authentication = request.app.locals.authentication as Authentication;
  if (securityName === 'basic') return asChatUser(request, authentication);
  // The scopes are those that the controllers name.
  if (securityName === 'bearer') return asTokenOwner(request, authentication, scopes as Scope[]);
  throw new TypeError('unknown security scheme');
}

const basicChallenge = 'Basic realm="chat", charset="UTF-8"';
const bearerChallenge = 'Bearer realm="blogs"';

async function asChatUser(request: Request, authentication: Authentication): Promise<Caller> {
  const { checkUser, userExists, usersLoaded, loginLimiter, earlyLimiter } = authentication;
  const sent = request.headersDistinct.authorization;
  if (sent === undefined) throw unauthorized(basicChallenge);
  const credentials = parseBasic(sent);
  const isLoaded = usersLoaded();
  const refused = (failure: Failure): never => {
    const user = credentials && userExists(credentials.name) ? credentials.name : undefined;
    // Said whatever the name is: another answer to the first user's would tell that it is theirs.
    const told = isLoaded ? failure : new Failure('internal', notLoaded);
    return refuse(request, authentication, { failure: told, user });
  };
  const user = await logIn(
    { address: request.ip, credentials: sent.join() },
    {
      limiter: isLoaded ? loginLimiter : earlyLimiter,
      check: () => credentials && checkUser(credentials.name, credentials.secret),
    },
  ).catch(refused);
  return user ? { ...user, scopes: ['chat'] } : refused(unauthorized(basicChallenge));
}

interface Checking<T> {
  limiter: LoginLimiter;
  check: () => T | undefined | Promise<T | undefined>;
}

/** Whom the check finds; throws what the limiter and the check throw. */
async function logIn<T>(login: Login, { limiter, check }: Checking<T>): Promise<T | undefined> {
  await limiter.admit(login);
  const found = await check();
  if (found === undefined) await limiter.countFailure(login);
  else limiter.noteSuccess(login);
  return found;
}

interface Refusal {
  failure: Failure;
  /** Who it was, where that is certain to be a user's name: a secret may have been sent in its place. */
  user?: string | undefined;
}

/** Throws the failure, and has the log say who has met it. */
function refuse(request: Request, { log }: Authentication, { failure, user }: Refusal): never {
  const requestId = request.res && requestIdOf(request.res);
  log.info({ requestId, code: failure.code, address: request.ip, user }, 'login refused');
  throw failure;
}

const notLoaded = { detail: 'The users have not been loaded yet.', retryable: true, retryAfterMs: 2000 };

async function asTokenOwner(
  request: Request,
  authentication: Authentication,
  scopes: readonly Scope[],
): Promise<Caller | undefined> {
  const { checkToken, loginLimiter, publicReads } = authentication;
  const isOpen = publicReads && scopes.every((scope) => scope === 'blogs:read');
  const sent = request.headersDistinct.authorization;
  if (sent === undefined && isOpen) return undefined;
  if (sent === undefined) throw unauthorized(bearerChallenge);
  const token = parseBearer(sent);
  const caller = await logIn(
    { address: request.ip, credentials: sent.join() },
    { limiter: loginLimiter, check: async () => (token === undefined ? undefined : checkToken(token)) },
  ).catch((error) => {
    if (!isRefusal(error)) throw error;
    return refuse(request, authentication, { failure: error });
  });
  if (caller === undefined) {
    const challenge = token === undefined ? bearerChallenge : `${bearerChallenge}, error="invalid_token"`;
    return refuse(request, authentication, { failure: unauthorized(challenge) });
  }
  if (isOpen || scopes.every((scope) => allows(caller, scope))) return caller;
  return refuse(request, authentication, { failure: insufficient(scopes), user: caller.name });
}

/** A database that is away refuses nobody. */
const isRefusal = (error: unknown): error is Failure =>
  error instanceof Failure && error.code === 'rate_limited';

/** Whoever may write may read. */
const allows = ({ scopes }: Caller, wanted: Scope): boolean =>
  scopes.includes(wanted) || (wanted === 'blogs:read' && scopes.includes('blogs:write'));

/** The name and the secret may be 512 characters of four bytes each, in base64, and no more. */
const maxHeader = 4096;

/** What follows the scheme in a header that was sent once. Node itself would silently go by the first of several. */
function credentialsOf([header, ...more]: string[], pattern: RegExp): string | undefined {
  if (header === undefined || more.length > 0 || header.length > maxHeader) return undefined;
  return pattern.exec(header)?.[1];
}

const parseBearer = (sent: string[]): string | undefined => credentialsOf(sent, /^bearer +([\x21-\x7e]+)$/i);

function parseBasic(sent: string[]): { name: string; secret: string } | undefined {
  const encoded = credentialsOf(sent, /^basic +([A-Za-z0-9+/_-]+=*)$/i);
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  const colon = bytes.indexOf(':');
  if (colon < 0 || !isUtf8(bytes)) return undefined;
  return { name: bytes.toString('utf8', 0, colon), secret: bytes.toString('utf8', colon + 1) };
}

const unauthorized = (challenge: string): Failure =>
  new Failure('unauthorized', {
    detail: challenge.startsWith('Basic') ? wantsUser : wantsToken,
    headers: { 'WWW-Authenticate': challenge },
  });

const wantsUser =
  'This address takes the name and the secret of a chat user (HTTP Basic), and they are missing or wrong.';
const wantsToken =
  'This address takes an access token (Authorization: Bearer …), and it is missing, wrong, expired or revoked.';

const insufficient = (scopes: readonly Scope[]): Failure =>
  new Failure('insufficient_scope', {
    headers: {
      'WWW-Authenticate': `${bearerChallenge}, error="insufficient_scope", scope="${scopes.join(' ')}"`,
    },
  });
