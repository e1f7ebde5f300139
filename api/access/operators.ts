import type { Request, RequestHandler } from 'express';
import type { Scope } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import { isLoopback } from '../../shared/urls/hosts.js';
import { requestIdOf } from '../http/problem.js';
import type { Caller, SignedIn } from './caller.js';
import { parseBearer, parseSessions } from './credentials.js';
import {
  type Accepted,
  type Authentication,
  asKnownUser,
  insufficient,
  logIn,
  logInFromMemory,
  refuse,
  refuseSuspended,
  unauthorized,
} from './login.js';

/**
 * Callers of the operators' addresses have a session of the console, or an access token with the scope
 * `admin`. An `Authorization` header decides alone, because no browser adds one by itself.
 */

/** Where operators use chat and blog, `asOperator` replaces the own check of these operations. */
export const operatorsBase = '/admin';

/** An operator may do all that the console can, below `/admin`. */
const operatorScopes: readonly Scope[] = ['admin', 'chat', 'blogs:read', 'blogs:write'];

/** The `WWW-Authenticate` of a refused request to the operators' addresses. */
export const adminChallenge = 'Bearer realm="admin"';

const operators: Accepted = {
  basic: false,
  tokens: true,
  scope: 'admin',
  challenge: adminChallenge,
  tokenChallenge: adminChallenge,
  detail:
    'This address takes a session of the console, or an access token with the scope admin (Authorization: Bearer …), and it is missing, wrong, expired or revoked.',
};

/** Throws `unauthorized`, `insufficient_scope`, `cross_origin`, `rate_limited` or `database_unavailable`. */
export async function asOperator(request: Request, authentication: Authentication): Promise<Caller> {
  const hasToken = request.headersDistinct.authorization !== undefined;
  const hasSession = parseSessions(request).length > 0;
  if (hasSession && !hasToken) return asSessionOwner(request, authentication);
  return { ...(await asKnownUser(request, authentication, operators)), scopes: operatorScopes };
}

/** Headers that proxies add, in lower case. */
const ofProxies = /^(forwarded|via|x-real-ip|x-forwarded-.*)$/;

/**
 * At the public port metrics are for operators: a request needs a token with the scope `admin`, unless the server
 * listens for its own machine alone and no proxy says that it forwards. Throws as `asOperator`.
 */
export function forOperators(host: string, authentication: Authentication): RequestHandler {
  return async (request, _response, next) => {
    const isLocal = isLoopback(host) && !Object.keys(request.headers).some((name) => ofProxies.test(name));
    if (!isLocal) await asOperator(request, authentication);
    next();
  };
}

/** The owner of the session of the console, even if the request has other credentials. Throws as `asOperator`. */
export async function asSessionOwner(request: Request, authentication: Authentication): Promise<Caller> {
  const { directory, loginLimiter } = authentication;
  const keys = parseSessions(request);
  if (keys.length === 0) throw unauthorized(sessionsAlone);
  if (!readMethods.has(request.method)) requireSameOrigin(request);
  const known = keys.map((key) => directory.checkSession(key)).filter((each) => each !== undefined);
  const lookUp = async () =>
    oneUserOf(await Promise.all(keys.slice(0, maxLookups).map((key) => directory.findSession(key))));
  const refused = (failure: Failure) => refuse(request, authentication, { failure });
  const owner =
    known.length > 0
      ? oneUserOf(known)
      : await logIn(request, { limiter: loginLimiter, secret: keys.join(), check: lookUp, refused });
  return owner ? { ...owner, scopes: operatorScopes } : refused(unauthorized(sessionsAlone));
}

/** At most this many sessions of one request are looked up in the database. */
const maxLookups = 8;

/** The owner of the valid sessions; undefined if they belong to several users, since another host may have set one. */
function oneUserOf(owners: readonly (Caller | undefined)[]): Caller | undefined {
  const [first, ...others] = owners.filter((owner) => owner !== undefined);
  return others.every(({ id }) => id === first?.id) ? first : undefined;
}

const sessionsAlone = {
  challenge: adminChallenge,
  detail: 'There is no active console session. Sign in again.',
};

const readMethods: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** A stream outlives the check that it began with: a token may be revoked, a session may end, and both may expire. */
export function mayStillOperate(request: Request): boolean {
  const { directory } = request.app.locals.authentication as Authentication;
  const sent = request.headersDistinct.authorization;
  const token = parseBearer(sent ?? []) ?? '';
  const caller =
    sent === undefined
      ? oneUserOf(parseSessions(request).map((key) => directory.checkSession(key)))
      : directory.checkToken(token);
  return (caller?.scopes.includes('admin') && !directory.isSuspended(caller.name)) ?? false;
}

/** Checks who signs in to the console. Throws `unauthorized`, `insufficient_scope`, `suspended`, `rate_limited`. */
export async function signIn(
  request: Request,
  { name, secret }: { name: string; secret: string },
): Promise<SignedIn> {
  const authentication = request.app.locals.authentication as Authentication;
  const signedIn = await logInFromMemory(request, authentication, {
    name,
    secret,
    check: () => authentication.directory.checkUser(name, secret),
    createRefusal: () =>
      unauthorized({ challenge: adminChallenge, detail: 'The name or the secret is wrong.' }),
  });
  const { user, isOperator } = signedIn;
  refuseSuspended(request, authentication, user.name);
  const requestId = request.res && requestIdOf(request.res);
  if (isOperator) {
    authentication.log.info({ requestId, address: request.ip, user: user.name }, 'signed in');
    return signedIn;
  }
  const { headers = {} } = insufficient(adminChallenge, ['admin'], []).facts;
  const failure = new Failure('insufficient_scope', { detail: withoutRole, headers });
  return refuse(request, authentication, { failure, user: user.name });
}

const withoutRole = 'The console is for users with the role admin.';

/** Refuses requests that a page of another origin may have sent, such as a sign-in under another name. */
export const refuseCrossOrigin: RequestHandler = (request, _response, next) => {
  requireSameOrigin(request);
  next();
};

function requireSameOrigin(request: Request): void {
  if (!isSameOrigin(request)) throw new Failure('cross_origin');
}

/** By `Sec-Fetch-Site` (https://www.w3.org/TR/fetch-metadata/), which browsers send to https and localhost alone, else by `Origin`. */
function isSameOrigin({ headers, host, secure }: Request): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  const { origin } = headers;
  if (origin === undefined || !URL.canParse(origin)) return false;
  const { protocol, host: from } = new URL(origin);
  if (secure && protocol !== 'https:') return false;
  // With its port, unless that is the protocol's own.
  const own = `${protocol}//${host}`;
  return URL.canParse(own) && from !== '' && new URL(own).host === from;
}
