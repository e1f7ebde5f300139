import { createTokenStore, type TokenInfo } from '../../db/access/tokens.js';
import { createUserStore, firstUserOf, type UserIdentity } from '../../db/access/users.js';
import type { Database } from '../../db/database/client.js';
import { type Config, defaultOwner } from '../../shared/config/config.js';
import type { Lifecycle } from '../../shared/runtime/lifecycle.js';
import type { Log } from '../../shared/runtime/log.js';
import { StartupError } from '../../shared/runtime/program.js';
import { withTimeout } from '../../shared/runtime/with-timeout.js';
import type { Authentication } from './authentication.js';
import { LoginLimiter } from './login-limiter.js';
import { createTokenAuthenticator } from './token-authenticator.js';
import { UserDirectory } from './user-directory.js';

interface AuthenticationDeps {
  database: Database;
  log: Log;
  lifecycle: Lifecycle;
}

/** Loads its users in the background. */
export interface OpenAuthentication extends Authentication {
  /** Resolves when the first attempt to load them has succeeded or failed. */
  readonly attempted: Promise<void>;
}

/** Knows the user of the environment, who needs no database, and the users and tokens in the database. */
export function openAuthentication(
  config: Config,
  { database, log, lifecycle }: AuthenticationDeps,
): OpenAuthentication {
  const { CHAT_PASSWORD: secret, BLOG_TOKEN: token } = config;
  const user = firstUser(config);
  const users = lifecycle.opened(
    'user directory',
    new UserDirectory({
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
    loginLimiter: new LoginLimiter(),
    earlyLimiter: new LoginLimiter(),
    log,
    publicReads: config.BLOG_READS === 'public',
  };
}

/** The user of the environment's credentials; undefined when it has none. */
const firstUser = (config: Config): UserIdentity | undefined =>
  config.CHAT_USERNAME || config.BLOG_TOKEN ? firstUserOf(defaultOwner(config)) : undefined;

/**
 * Throws `StartupError` when there are no credentials at all: a server that nobody can use is a mistake. It starts when
 * the database is unavailable, which may know somebody.
 */
export async function refuseWithoutCredentials(
  config: Config,
  { database, log }: Omit<AuthenticationDeps, 'lifecycle'>,
): Promise<void> {
  if (config.CHAT_USERNAME || config.BLOG_TOKEN) return;
  try {
    const lists = Promise.all([createUserStore(database).list(), createTokenStore(database).list()]);
    const [users, tokens] = await withTimeout(timeoutMs, lists);
    if (users.some(({ hasSecret }) => hasSecret) || tokens.some(isActive)) return;
  } catch (error) {
    log.warn({ err: error }, 'cannot check yet whether there are users or tokens');
    return;
  }
  throw new StartupError(
    'Nobody could use this server: set CHAT_USERNAME and CHAT_PASSWORD, or BLOG_TOKEN, or run\n' +
      '  npx quillgate users add NAME\n  npx quillgate tokens create --scope blogs:write',
  );
}

/** The start must not hang with the database. */
const timeoutMs = 2000;

/** Neither revoked nor expired. */
const isActive = ({ revokedAt, expiresAt }: TokenInfo): boolean =>
  revokedAt === null && (expiresAt === null || Date.parse(expiresAt) > Date.now());
