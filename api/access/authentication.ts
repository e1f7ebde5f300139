import type { Request } from 'express';
import { createSessionStore } from '../../db/access/sessions.js';
import { createTokenStore, type WriteToken } from '../../db/access/tokens.js';
import { createUserStore, firstUserOf, type UserIdentity } from '../../db/access/users.js';
import type { Database } from '../../db/database/client.js';
import { type Config, defaultOwner } from '../../shared/config/config.js';
import type { UserInfo } from '../../shared/contracts/accounts.js';
import type { Scope } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import type { Lifecycle } from '../../shared/runtime/lifecycle.js';
import type { Log } from '../../shared/runtime/log.js';
import { StartupError } from '../../shared/runtime/program.js';
import { withTimeout } from '../../shared/runtime/retry.js';
import { AccessDirectory } from './access-directory.js';
import type { AuthenticatedRequest, Caller, ReaderRequest } from './caller.js';
import { parseBasic, parseBearer } from './credentials.js';
import type { EnvironmentUser } from './known-users.js';
import {
  type Accepted,
  type Authentication,
  asKnownUser,
  insufficient,
  logIn,
  refuse,
  refuseSuspended,
  unauthorized,
} from './login.js';
import { LoginLimiter } from './login-limiter.js';
import { adminChallenge, asOperator, asSessionOwner, mayStillOperate, operatorsBase } from './operators.js';

/**
 * The generated routes call it before they read anything of the request; the result becomes `request.user`, which is
 * undefined for an anonymous reader. `basic` is HTTP Basic (RFC 7617, UTF-8) for chat users, `bearer` an access token
 * (RFC 6750) with all of the scopes, `chat` either: Basic, or an access token with the scope `chat`. `admin` is
 * any credential for the operators' addresses (`operators.ts`), `session` a session of the console alone. Throws
 * `unauthorized`, `insufficient_scope`, `suspended`, `cross_origin` or `rate_limited`. Where chat and blog are mounted
 * for operators, all of their schemes mean `admin`.
 */
export async function expressAuthentication(
  request: Request,
  securityName: string,
  scopes: string[] = [],
): Promise<Caller | undefined> {
  const authentication = request.app.locals.authentication as Authentication;
  const caller = await callerOf(request, authentication, { securityName, scopes });
  if (caller) refuseSuspended(request, authentication, caller.name);
  return caller;
}

async function callerOf(
  request: Request,
  authentication: Authentication,
  { securityName, scopes }: { securityName: string; scopes: string[] },
): Promise<Caller | undefined> {
  if (securityName === 'session') return asSessionOwner(request, authentication);
  if (securityName === 'admin' || request.baseUrl === operatorsBase)
    return asOperator(request, authentication);
  if (securityName === 'basic') return asKnownUser(request, authentication, usersAlone);
  if (securityName === 'chat') return asKnownUser(request, authentication, usersAndTokens);
  // The scopes come from the controllers.
  if (securityName === 'bearer') return asTokenOwner(request, authentication, scopes as Scope[]);
  throw new TypeError('unknown security scheme');
}

/**
 * Calls the listener once the credentials of a chat request are no longer valid: a request may outlive its user, its
 * token or its session by minutes. Returns a function to call when the request has ended. Throws `unauthorized` if the
 * credentials are not valid now, and `suspended` if their user is.
 */
export function onCredentialsEnd(request: Request, listener: (failure: Failure) => void): () => void {
  const authentication = request.app.locals.authentication as Authentication;
  const detail = 'The credentials of this request are no longer valid.';
  const end = (): Failure | undefined => {
    const { name = '' } = (request as ReaderRequest).user ?? {};
    if (authentication.directory.isSuspended(name)) return new Failure('suspended');
    if (mayStillChat(request, authentication)) return undefined;
    return unauthorized({ challenge: challengeOf(request), detail });
  };
  // They may have ended while the body arrived.
  const ended = end();
  if (ended) throw ended;
  const stop = authentication.directory.onLoad(() => {
    const failure = end();
    if (failure === undefined) return;
    stop();
    listener(failure);
  });
  return stop;
}

/**
 * Resolves within about a second, when all that the database says of access by now is known here, or cannot be read;
 * never rejects.
 */
export const reloadAccess = (request: Request): Promise<void> =>
  (request.app.locals.authentication as Authentication).directory.reloadShared();

/** The token of a request that writes, if it is in the database: it may be revoked after it was checked here. */
export function writeTokenOf(request: AuthenticatedRequest): WriteToken | undefined {
  const { tokenId: id, name } = request.user;
  if (id === undefined) return undefined;
  const authentication = request.app.locals.authentication as Authentication;
  const challenge = request.baseUrl === operatorsBase ? adminChallenge : invalidToken;
  const failure = () => unauthorized({ challenge, detail: needsToken });
  return { id, refuse: () => refuse(request, authentication, { failure: failure(), user: name }) };
}

function mayStillChat(request: Request, { directory }: Authentication): boolean {
  if (request.baseUrl === operatorsBase) return mayStillOperate(request);
  const sent = request.headersDistinct.authorization ?? [];
  const token = parseBearer(sent);
  if (token !== undefined) return directory.checkToken(token)?.scopes.includes('chat') ?? false;
  const credentials = parseBasic(sent);
  return credentials !== undefined && directory.checkUser(credentials.name, credentials.secret) !== undefined;
}

function challengeOf({ baseUrl, headersDistinct: { authorization = [] } }: Request): string {
  if (baseUrl === operatorsBase) return adminChallenge;
  return parseBearer(authorization) === undefined ? basicChallenge : chatBearerChallenge;
}

const basicChallenge = 'Basic realm="chat", charset="UTF-8"';
const chatBearerChallenge = 'Bearer realm="chat"';
const bearerChallenge = 'Bearer realm="blogs"';
const invalidToken = `${bearerChallenge}, error="invalid_token"`;

const usersAlone: Accepted = {
  basic: true,
  tokens: false,
  scope: 'chat',
  challenge: basicChallenge,
  tokenChallenge: chatBearerChallenge,
  detail:
    'This address takes the name and the secret of a chat user (HTTP Basic), and they are missing or wrong.',
};
const usersAndTokens: Accepted = {
  basic: true,
  tokens: true,
  scope: 'chat',
  challenge: `${chatBearerChallenge}, ${basicChallenge}`,
  tokenChallenge: chatBearerChallenge,
  detail:
    'This address takes an access token with the scope chat (Authorization: Bearer …), or the name and the secret of a chat user (HTTP Basic), and they are missing, wrong, expired or revoked.',
};

async function asTokenOwner(
  request: Request,
  authentication: Authentication,
  scopes: readonly Scope[],
): Promise<Caller | undefined> {
  const { directory, loginLimiter, publicReads } = authentication;
  const isOpen = publicReads && scopes.every((scope) => scope === 'blogs:read');
  const sent = request.headersDistinct.authorization;
  if (sent === undefined && isOpen) return undefined;
  if (sent === undefined) throw unauthorized({ challenge: bearerChallenge, detail: needsToken });
  const token = parseBearer(sent);
  const refused = (failure: Failure) => refuse(request, authentication, { failure });
  const caller = await logIn(request, {
    limiter: loginLimiter,
    secret: token ?? '',
    check: async () => (token === undefined ? undefined : directory.findToken(token)),
    refused,
  });
  const challenge = token === undefined ? bearerChallenge : invalidToken;
  if (caller === undefined) return refused(unauthorized({ challenge, detail: needsToken }));
  if (isOpen || scopes.every((scope) => allows(caller, scope))) return caller;
  return refuse(request, authentication, {
    failure: insufficient(bearerChallenge, scopes, caller.scopes),
    user: caller.name,
  });
}

const needsToken =
  'This address takes an access token (Authorization: Bearer …), and it is missing, wrong, expired or revoked.';

/** Write access includes read access. */
const allows = ({ scopes }: Caller, wanted: Scope): boolean =>
  scopes.includes(wanted) || (wanted === 'blogs:read' && scopes.includes('blogs:write'));

/** An authentication that loads its users in the background. */
export interface OpenAuthentication extends Authentication {
  /** Resolves when the first attempt to load them has succeeded or failed. */
  readonly attempted: Promise<void>;
  readonly directory: AccessDirectory;
}

/** Knows the users of the environment, who need no database, and the users, tokens and sessions in the database. */
export function openAuthentication(
  config: Config,
  { database, log, lifecycle }: { database: Database; log: Log; lifecycle: Lifecycle },
): OpenAuthentication {
  const environment = { first: firstUser(config), admin: adminOf(config) };
  const users = createUserStore(database);
  const tokens = createTokenStore(database);
  const sessions = createSessionStore(database);
  const directory = new AccessDirectory({ environment, users, tokens, sessions, log });
  lifecycle.opened('access directory', directory, (open) => open.close());
  return {
    attempted: directory.start(database),
    directory,
    loginLimiter: new LoginLimiter(),
    earlyLimiter: new LoginLimiter(),
    log,
    publicReads: config.BLOG_READS === 'public',
  };
}

/** The user of the environment's credentials; undefined when it has none. */
function firstUser(config: Config): EnvironmentUser | undefined {
  if (!hasFirstCredentials(config)) return undefined;
  const { CHAT_PASSWORD: secret, BLOG_TOKEN, CHAT_TOKEN } = config;
  const given: [token: string | undefined, scopes: Scope[]][] = [
    [BLOG_TOKEN, ['blogs:write', 'blogs:read']],
    [CHAT_TOKEN, ['chat']],
  ];
  const tokens = given.flatMap(([token, scopes]) => (token ? [{ token, scopes }] : []));
  return { user: firstUserOf(defaultOwner(config)), secret, tokens };
}

/** The users that the environment names, as operators see them. */
export const environmentUsers = (config: Config): UserInfo[] => {
  const [first, admin] = [firstUser(config)?.user, adminOf(config)?.user];
  const toInfo = ({ createdAt, ...user }: UserIdentity) => ({ ...user, createdAt: createdAt.toISOString() });
  return [
    ...(admin ? [{ ...toInfo(admin), role: 'admin' as const, hasSecret: true }] : []),
    ...(first ? [{ ...toInfo(first), role: 'user' as const, hasSecret: Boolean(config.CHAT_PASSWORD) }] : []),
  ];
};

/** The user of the environment who may sign in to the console. */
const adminOf = ({ ADMIN_USERNAME: name, ADMIN_PASSWORD: secret }: Config) =>
  name && secret ? { user: firstUserOf(name), secret } : undefined;

const hasFirstCredentials = ({ CHAT_USERNAME, BLOG_TOKEN, CHAT_TOKEN }: Config): boolean =>
  Boolean(CHAT_USERNAME || BLOG_TOKEN || CHAT_TOKEN);

/** Throws `StartupError` without any credentials; starts while the database, which may hold users, is unavailable. */
export async function refuseWithoutCredentials(
  config: Config,
  { database, log }: { database: Database; log: Log },
): Promise<void> {
  if (hasFirstCredentials(config) || adminOf(config)) return;
  try {
    const lists = Promise.all([createUserStore(database).list(), createTokenStore(database).listActive()]);
    const [users, tokens] = await withTimeout(timeoutMs, lists);
    if (users.some(({ hasSecret }) => hasSecret) || tokens.length > 0) return;
  } catch (error) {
    log.warn({ err: error }, 'cannot check yet whether there are users or tokens');
    return;
  }
  throw new StartupError(
    'This server has no credentials for anyone: set CHAT_USERNAME and CHAT_PASSWORD, ADMIN_USERNAME and ADMIN_PASSWORD, BLOG_TOKEN or CHAT_TOKEN, or run\n' +
      '  bin/quillgate users add NAME\n  bin/quillgate tokens create --owner NAME --scope chat,blogs:write',
  );
}

/** The start must not hang with the database. */
const timeoutMs = 2000;
