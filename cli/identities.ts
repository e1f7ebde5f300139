import { readFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { type Config, defaultOwner } from '../shared/config/config.js';
import { StartupError } from '../shared/runtime/program.js';
import { userName } from '../shared/user-name.js';

/** Who runs the command, for the audit: the account of the operating system, and its machine. */
export const actor = (): string => `${account()}@${hostname()}`;

/** Containers may run under a user id without a name. */
function account(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}

/** Checks the name of a user or of a token's owner by the rule of CHAT_USERNAME. Throws `StartupError`. */
export function checkName(name: string): string {
  if (!userName.safeParse(name).success)
    throw new StartupError('A name has 1 to 128 characters, and no colon or control characters.');
  return name;
}

/**
 * Name of the user whose credentials the API gets from its environment: CHAT_USERNAME, or the one `npm start` made when
 * this is its database. Undefined when neither is known here.
 */
export const firstName = ({ CHAT_USERNAME, ...config }: FirstNames): string | undefined =>
  CHAT_USERNAME ?? generatedName(config, 'chat-credentials');

/** The same of ADMIN_USERNAME. */
export const adminName = ({ ADMIN_USERNAME, ...config }: FirstNames): string | undefined =>
  ADMIN_USERNAME ?? generatedName(config, 'admin-credentials');

type FirstNames = Pick<Config, 'CHAT_USERNAME' | 'ADMIN_USERNAME' | 'DATABASE_URL' | 'DATA_DIR'>;

/** The variables that give this user another secret than the database's; undefined without any, or if unknown. */
export function secretVariablesOf(config: Config, name: string): string | undefined {
  if (name === firstName(config)) return 'CHAT_USERNAME and CHAT_PASSWORD';
  return name === adminName(config) ? 'ADMIN_USERNAME and ADMIN_PASSWORD' : undefined;
}

/** Default owner of a token and author of a post: the same as for the tokens of the environment. */
export const ownerByDefault = (config: Config): string => firstName(config) ?? defaultOwner(config);

/** `npm start` writes `name:secret` to this file. */
function generatedName(
  { DATABASE_URL, DATA_DIR }: Pick<Config, 'DATABASE_URL' | 'DATA_DIR'>,
  file: string,
): string | undefined {
  if (DATABASE_URL !== undefined) return undefined;
  try {
    return /^([^:]+):/.exec(readFileSync(join(DATA_DIR, file), 'utf8'))?.[1];
  } catch {
    // It does not exist, or we may not read it.
    return undefined;
  }
}
