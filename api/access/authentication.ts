import { isUtf8 } from 'node:buffer';
import type { Request } from 'express';
import type { UserIdentity } from '../../db/access/users.js';
import type { Scope } from '../../shared/contract.js';
import { Failure } from '../../shared/failures.js';
import type { Log } from '../../shared/runtime/log.js';
import { requestIdOf } from '../http/problem.js';
import type { Login, LoginLimiter } from './login-limiter.js';

/** The authenticated user of a request: the same one by Basic and by any of their tokens. */
export interface Caller extends UserIdentity {
  readonly scopes: readonly Scope[];
}

/** A request of an operation that requires credentials, after they have been checked. */
export type AuthenticatedRequest = Request & { readonly user: Caller };

/** A request of an operation that may be public; `user` is undefined for an anonymous reader. */
export type ReaderRequest = Request & { readonly user?: Caller };

/** Whether the caller may write posts, and therefore see drafts. */
export const mayWrite = ({ user }: ReaderRequest): boolean => user?.scopes.includes('blogs:write') ?? false;

/** Checks credentials for the generated routes, which find it in `app.locals.authentication`. */
export interface Authentication {
  /** Takes the same time whichever of the two is wrong. */
  checkUser(name: string, secret: string): UserIdentity | undefined;
  /** Whether a user has this name, so that it is safe to log. */
  userExists(name: string): boolean;
  /** Whether `checkUser` knows all users; until then a failed check proves nothing. */
  usersLoaded(): boolean;
  checkToken(token: string): Promise<Caller | undefined>;
  /** As `checkToken`, but without the database: knows what was loaded with the users. */
  checkLoadedToken(token: string): Caller | undefined;
  loginLimiter: LoginLimiter;
  /** For Basic until the users are loaded: credentials that fail by then may be right, and must not count later. */
  earlyLimiter: LoginLimiter;
  log: Log;
  /** Whether posts may be read without credentials. */
  publicReads: boolean;
}

/**
 * The generated routes call it before they read anything of the request; the result becomes `request.user`, which is
 * undefined for an anonymous reader. `basic` is HTTP Basic (RFC 7617, UTF-8) for chat users, `bearer` an access token
 * (RFC 6750) with all of the scopes, `chat` either: Basic, or an access token with the scope `chat`. `admin` is whatever opens the
 * operators' addresses: an access token with the scope `admin`. Throws `unauthorized`, `insufficient_scope` or `rate_limited`.
 */
export async function expressAuthentication(
  request: Request,
  securityName: string,
  scopes: string[] = [],
): Promise<Caller | undefined> {
  const authentication = request.app.locals.authentication as Authentication;
  if (securityName === 'basic') return asKnownUser(request, authentication, usersAlone);
  if (securityName === 'chat') return asKnownUser(request, authentication, usersAndTokens);
  if (securityName === 'admin') return asKnownUser(request, authentication, operators);
  // The scopes come from the controllers.
  if (securityName === 'bearer') return asTokenOwner(request, authentication, scopes as Scope[]);
  throw new TypeError('unknown security scheme');
}

/**
 * Whether the credentials of a request to an operators' address are still good. A stream outlives the check it began with: a token may
 * be revoked meanwhile, or expire.
 */
export function mayStillOperate(request: Request): boolean {
  const { checkLoadedToken } = request.app.locals.authentication as Authentication;
  const token = parseBearer(request.headersDistinct.authorization ?? []);
  return token !== undefined && (checkLoadedToken(token)?.scopes.includes('admin') ?? false);
}

const basicChallenge = 'Basic realm="chat", charset="UTF-8"';
const chatBearerChallenge = 'Bearer realm="chat"';
const bearerChallenge = 'Bearer realm="blogs"';
const adminChallenge = 'Bearer realm="admin"';

/** The credentials that an address takes which works without the database. */
interface Accepted {
  readonly basic: boolean;
  readonly tokens: boolean;
  readonly scope: Scope;
  readonly challenge: string;
  readonly detail: string;
}

const usersAlone: Accepted = {
  basic: true,
  tokens: false,
  scope: 'chat',
  challenge: basicChallenge,
  detail:
    'This address takes the name and the secret of a chat user (HTTP Basic), and they are missing or wrong.',
};
const usersAndTokens: Accepted = {
  basic: true,
  tokens: true,
  scope: 'chat',
  challenge: `${chatBearerChallenge}, ${basicChallenge}`,
  detail:
    'This address takes an access token with the scope chat (Authorization: Bearer …), or the name and the secret of a chat user (HTTP Basic), and they are missing, wrong, expired or revoked.',
};

const operators: Accepted = {
  basic: false,
  tokens: true,
  scope: 'admin',
  challenge: adminChallenge,
  detail:
    'This address takes an access token with the scope admin (Authorization: Bearer …), and it is missing, wrong, expired or revoked.',
};

async function asKnownUser(
  request: Request,
  authentication: Authentication,
  accepted: Accepted,
): Promise<Caller> {
  const { checkLoadedToken, userExists, usersLoaded, loginLimiter, earlyLimiter } = authentication;
  const sent = request.headersDistinct.authorization;
  if (sent === undefined) throw unauthorized(accepted);
  const token = accepted.tokens ? parseBearer(sent) : undefined;
  const credentials = accepted.basic ? parseBasic(sent) : undefined;
  const isLoaded = usersLoaded();
  const refused = (failure: Failure): never => {
    const user = credentials && userExists(credentials.name) ? credentials.name : undefined;
    // The same for every name: a different answer would reveal the first user's name.
    const answer = isLoaded ? failure : new Failure('internal', notLoaded);
    return refuse(request, authentication, { failure: answer, user });
  };
  const caller = await logIn(
    { address: request.ip, credentials: sent.join() },
    {
      limiter: isLoaded ? loginLimiter : earlyLimiter,
      check: () => (token === undefined ? checkBasic(credentials, authentication) : checkLoadedToken(token)),
    },
  ).catch(refused);
  if (caller === undefined) return refused(unauthorized(accepted));
  const { scope } = accepted;
  if (caller.scopes.includes(scope)) return caller;
  const failure = insufficient(scope === 'admin' ? adminChallenge : chatBearerChallenge, [scope]);
  return refuse(request, authentication, { failure, user: caller.name });
}

function checkBasic(
  credentials: ReturnType<typeof parseBasic>,
  { checkUser }: Authentication,
): Caller | undefined {
  const user = credentials && checkUser(credentials.name, credentials.secret);
  return user && { ...user, scopes: ['chat'] };
}

interface CredentialCheck<T> {
  limiter: LoginLimiter;
  check: () => T | undefined | Promise<T | undefined>;
}

/** The result of the check; throws what the limiter and the check throw. */
async function logIn<T>(login: Login, { limiter, check }: CredentialCheck<T>): Promise<T | undefined> {
  await limiter.admit(login);
  const found = await check();
  if (found === undefined) await limiter.recordFailure(login);
  else limiter.recordSuccess(login);
  return found;
}

interface LoginRefusal {
  failure: Failure;
  /** Only if it is certainly a user's name: clients may send a secret in its place. */
  user?: string | undefined;
}

/** Throws the failure after logging who was refused. */
function refuse(request: Request, { log }: Authentication, { failure, user }: LoginRefusal): never {
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
  if (sent === undefined) throw unauthorized({ challenge: bearerChallenge, detail: needsToken });
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
    return refuse(request, authentication, { failure: unauthorized({ challenge, detail: needsToken }) });
  }
  if (isOpen || scopes.every((scope) => allows(caller, scope))) return caller;
  return refuse(request, authentication, {
    failure: insufficient(bearerChallenge, scopes),
    user: caller.name,
  });
}

/** An unavailable database is an error, but no refusal. */
const isRefusal = (error: unknown): error is Failure =>
  error instanceof Failure && error.code === 'rate_limited';

/** Write access includes read access. */
const allows = ({ scopes }: Caller, wanted: Scope): boolean =>
  scopes.includes(wanted) || (wanted === 'blogs:read' && scopes.includes('blogs:write'));

/** Enough for a name and a secret of 512 characters in all, four bytes each, in base64. */
const maxHeader = 4096;

/** What follows the scheme, if the header was sent exactly once; Node would silently use the first of several. */
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

const unauthorized = ({ challenge, detail }: Pick<Accepted, 'challenge' | 'detail'>): Failure =>
  new Failure('unauthorized', { detail, headers: { 'WWW-Authenticate': challenge } });

const needsToken =
  'This address takes an access token (Authorization: Bearer …), and it is missing, wrong, expired or revoked.';

const insufficient = (challenge: string, scopes: readonly Scope[]): Failure =>
  new Failure('insufficient_scope', {
    headers: {
      'WWW-Authenticate': `${challenge}, error="insufficient_scope", scope="${scopes.join(' ')}"`,
    },
  });
