import { readFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { type Config, defaultOwner } from '../shared/config/config.js';
import { userName } from '../shared/credential-forms.js';
import { StartupError } from '../shared/runtime/program.js';

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

/** The variables that give this user another secret than the database's; undefined without any, or if unknown. */
export function secretVariablesOf(config: Config, name: string): string | undefined {
  const prefix = (['CHAT', 'ADMIN'] as const).find((one) => nameInEnvironment(one, config) === name);
  return prefix && `${prefix}_USERNAME and ${prefix}_PASSWORD`;
}

/** Default owner of a token and author of a post: the same as for the tokens of the environment. */
export const ownerByDefault = (config: Config): string =>
  nameInEnvironment('CHAT', config) ?? defaultOwner(config);

/**
 * Name of the user whose credentials the API gets from its environment: CHAT_USERNAME or ADMIN_USERNAME, or the one
 * `npm start` made when this is its database. Undefined when neither is known here.
 */
export function nameInEnvironment(prefix: 'CHAT' | 'ADMIN', config: Config): string | undefined {
  const given = config[`${prefix}_USERNAME`];
  if (given !== undefined || config.DATABASE_URL !== undefined) return given;
  const file = join(config.DATA_DIR, `${prefix.toLowerCase()}-credentials`);
  try {
    // `npm start` writes `name:secret` to it.
    return /^([^:]+):/.exec(readFileSync(file, 'utf8'))?.[1];
  } catch {
    // It does not exist, or we may not read it.
    return undefined;
  }
}
