import { createSessionStore } from '../../db/access/sessions.js';
import { createTokenStore } from '../../db/access/tokens.js';
import { createUserStore, firstUserOf, type UserIdentity } from '../../db/access/users.js';
import type { Database } from '../../db/database/client.js';
import { type Config, defaultOwner } from '../../shared/config/config.js';
import type { UserInfo } from '../../shared/contracts/accounts.js';
import type { Scope } from '../../shared/contracts/contract.js';
import type { Lifecycle } from '../../shared/runtime/lifecycle.js';
import type { Log } from '../../shared/runtime/log.js';
import { StartupError } from '../../shared/runtime/program.js';
import { withTimeout } from '../../shared/runtime/with-timeout.js';
import { AccessDirectory } from './access-directory.js';
import type { EnvironmentUser } from './known-users.js';
import type { Authentication } from './login.js';
import { LoginLimiter } from './login-limiter.js';

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
