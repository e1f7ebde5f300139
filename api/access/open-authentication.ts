import { createTokenStore, type TokenInfo } from '../../db/access/tokens.js';
import { createUserStore, firstUserOf, type UserIdentity } from '../../db/access/users.js';
import type { Database } from '../../db/database/client.js';
import { type Config, defaultOwner } from '../../shared/config/config.js';
import type { Lifecycle } from '../../shared/runtime/lifecycle.js';
import type { Log } from '../../shared/runtime/log.js';
import { StartupError } from '../../shared/runtime/program.js';
import { withTimeout } from '../../shared/runtime/with-timeout.js';
import type { Authentication } from './authentication.js';
import { createLoginLimiter } from './login-limiter.js';
import { createTokenAuthenticator } from './token-authenticator.js';
import { createUserDirectory } from './user-directory.js';

interface AuthenticationDeps {
  database: Database;
  log: Log;
  lifecycle: Lifecycle;
}

/** An authentication that loads its users in the background. */
export interface OpenAuthentication extends Authentication {
  /** Resolves when the first attempt to load them is over, well or not. */
  readonly attempted: Promise<void>;
}

/** Who may use this server: those whom the environment names, who need no database, and those in the database. */
export function openAuthentication(
  config: Config,
  { database, log, lifecycle }: AuthenticationDeps,
): OpenAuthentication {
  const { CHAT_PASSWORD: secret, BLOG_TOKEN: token } = config;
  const user = firstUser(config);
  const users = lifecycle.opened(
    'user directory',
    createUserDirectory({
      first: user && { user, secret },
      users: createUserStore(database),
      database,
      log,
    }),
    (open) => open.close(),
  );
  const checkToken = createTokenAuthenticator({
    first: user && { user, token },
    tokens: createTokenStore(database),
    log,
  });
  return {
    attempted: users.attempted,
    checkUser: (...credentials) => users.check(...credentials),
    userExists: (name) => users.has(name),
    usersLoaded: () => users.loaded,
    checkToken,
    loginLimiter: createLoginLimiter(),
    earlyLimiter: createLoginLimiter(),
    log,
    publicReads: config.BLOG_READS === 'public',
  };
}

/** Whom the credentials of the environment stand for; undefined when it has none. */
const firstUser = (config: Config): UserIdentity | undefined =>
  config.CHAT_USERNAME || config.BLOG_TOKEN ? firstUserOf(defaultOwner(config)) : undefined;

/**
 * Throws `StartupError` when there are no credentials at all: a server that nobody can use is a mistake that is better
 * told now. A database that is away may know somebody.
 */
export async function refuseWithoutCredentials(
  config: Config,
  { database, log }: Omit<AuthenticationDeps, 'lifecycle'>,
): Promise<void> {
  if (config.CHAT_USERNAME || config.BLOG_TOKEN) return;
  try {
    const lists = Promise.all([createUserStore(database).list(), createTokenStore(database).list()]);
    const [users, tokens] = await withTimeout(patienceMs, lists);
    if (users.some(({ hasSecret }) => hasSecret) || tokens.some(isGood)) return;
  } catch (error) {
    log.warn({ err: error }, 'cannot see yet whether there are users or tokens');
    return;
  }
  throw new StartupError(
    'Nobody could use this server: set CHAT_USERNAME and CHAT_PASSWORD, or BLOG_TOKEN, or run\n' +
      '  npx quillgate users add NAME\n  npx quillgate tokens create --scope blogs:write',
  );
}

/** A start must not wait for a silent database. */
const patienceMs = 2000;

/** Neither revoked nor expired. */
const isGood = ({ revokedAt, expiresAt }: TokenInfo): boolean =>
  revokedAt === null && (expiresAt === null || Date.parse(expiresAt) > Date.now());
