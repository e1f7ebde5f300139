import type { Request } from 'express';
import type { Scope } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import type { Log } from '../../shared/runtime/log.js';
import { requestIdOf } from '../http/problem.js';
import type { AccessDirectory } from './access-directory.js';
import type { Caller } from './caller.js';
import { parseBasic, parseBearer } from './credentials.js';
import type { Login, LoginLimiter } from './login-limiter.js';

/** Checks credentials for the generated routes, which find it in `app.locals.authentication`. */
export interface Authentication {
  readonly directory: Pick<
    AccessDirectory,
    | 'checkUser'
    | 'hasUser'
    | 'isSuspended'
    | 'loaded'
    | 'checkToken'
    | 'findToken'
    | 'checkSession'
    | 'findSession'
    | 'onLoad'
    | 'reloadShared'
  >;
  readonly loginLimiter: LoginLimiter;
  /** For Basic until the users are loaded: credentials that fail by then may be right, and must not count later. */
  readonly earlyLimiter: LoginLimiter;
  readonly log: Log;
  publicReads: boolean;
}

/** The credentials that an address takes which works without the database. */
export interface Accepted {
  readonly basic: boolean;
  readonly tokens: boolean;
  readonly scope: Scope;
  /** `WWW-Authenticate` of a 401. */
  readonly challenge: string;
  /** `WWW-Authenticate` of a 403. */
  readonly tokenChallenge: string;
  readonly detail: string;
}

/** The caller of these credentials, from memory. Throws `unauthorized`, `insufficient_scope` or `rate_limited`. */
export async function asKnownUser(
  request: Request,
  authentication: Authentication,
  accepted: Accepted,
): Promise<Caller> {
  const { directory } = authentication;
  const sent = request.headersDistinct.authorization;
  if (sent === undefined) throw unauthorized(accepted);
  const token = accepted.tokens ? parseBearer(sent) : undefined;
  const credentials = accepted.basic ? parseBasic(sent) : undefined;
  const caller = await logInFromMemory(request, authentication, {
    name: credentials?.name,
    secret: token ?? credentials?.secret ?? '',
    check: () => (token === undefined ? checkBasic(credentials, directory) : directory.checkToken(token)),
    createRefusal: () => unauthorized(accepted),
  });
  const { scope, tokenChallenge } = accepted;
  if (caller.scopes.includes(scope)) return caller;
  const failure = insufficient(tokenChallenge, [scope], caller.scopes);
  return refuse(request, authentication, { failure, user: caller.name });
}

interface LoginFromMemory<T> extends Pick<Login, 'name' | 'secret'> {
  check: () => T | undefined;
  /** Creates what it throws when the check finds no user: each failure records a stack, which takes time. */
  createRefusal: () => Failure;
}

/** The result of a check that knows only what was loaded; until that has happened, its failure proves nothing. */
export async function logInFromMemory<T>(
  request: Request,
  authentication: Authentication,
  { name, secret, check, createRefusal }: LoginFromMemory<T>,
): Promise<T> {
  const { directory, loginLimiter, earlyLimiter } = authentication;
  const isLoaded = directory.loaded;
  const refused = (failure: Failure): never => {
    const user = name !== undefined && directory.hasUser(name) ? name : undefined;
    // The same for every name: a different answer would reveal the first user's name.
    const answer = isLoaded ? failure : new Failure('internal', notLoaded);
    return refuse(request, authentication, { failure: answer, user });
  };
  const limiter = isLoaded ? loginLimiter : earlyLimiter;
  return (await logIn(request, { limiter, name, secret, check, refused })) ?? refused(createRefusal());
}

const notLoaded = { detail: 'The users have not been loaded yet.', retryable: true, retryAfterMs: 2000 };

function checkBasic(
  credentials: ReturnType<typeof parseBasic>,
  directory: Authentication['directory'],
): Caller | undefined {
  const signedIn = credentials && directory.checkUser(credentials.name, credentials.secret);
  return signedIn && { ...signedIn.user, scopes: ['chat'] };
}

interface CredentialCheck<T> extends Pick<Login, 'name' | 'secret'> {
  limiter: LoginLimiter;
  check: () => T | undefined | Promise<T | undefined>;
  /** Throws the failure of an attempt that the limiter refuses. */
  refused: (failure: Failure) => never;
}

/** The result of the check; throws what it and `refused` throw. */
export async function logIn<T>(
  { ip, res }: Request,
  { limiter, name, secret, check, refused }: CredentialCheck<T>,
): Promise<T | undefined> {
  const login: Login = { address: ip, response: res, name, secret };
  try {
    await limiter.admit(login);
    const found = await check();
    if (found === undefined) await limiter.recordFailure(login);
    else limiter.recordSuccess(login);
    return found;
  } catch (error) {
    // An unavailable database is an error, but no refusal.
    if (error instanceof Failure && error.code === 'rate_limited') return refused(error);
    throw error;
  }
}

interface LoginRefusal {
  failure: Failure;
  /** Only if it is certainly a user's name: clients may send a secret in its place. */
  user?: string | undefined;
}

/** Throws the failure after logging who was refused. */
export function refuse(request: Request, { log }: Authentication, { failure, user }: LoginRefusal): never {
  const requestId = request.res && requestIdOf(request.res);
  log.info({ requestId, code: failure.code, address: request.ip, user }, 'login refused');
  throw failure;
}

/** Throws `suspended`, after logging it, for a user that operators have suspended. */
export function refuseSuspended(request: Request, authentication: Authentication, user: string): void {
  if (authentication.directory.isSuspended(user))
    refuse(request, authentication, { failure: new Failure('suspended'), user });
}

export const unauthorized = ({ challenge, detail }: Pick<Accepted, 'challenge' | 'detail'>): Failure =>
  new Failure('unauthorized', { detail, headers: { 'WWW-Authenticate': challenge } });

/** For a token that is good, but has other scopes. */
export const insufficient = (challenge: string, scopes: readonly Scope[], has: readonly Scope[]): Failure =>
  new Failure('insufficient_scope', {
    detail: `This address needs an access token with the scope ${scopes.join(', ')}; the scope of this one is ${has.join(', ')}.`,
    headers: {
      'WWW-Authenticate': `${challenge}, error="insufficient_scope", scope="${scopes.join(' ')}"`,
    },
  });
