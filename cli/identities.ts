import { readFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { type Config, defaultOwner, environmentSchema } from '../shared/config/config.js';
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
  const [issue] = environmentSchema.shape.CHAT_USERNAME.safeParse(name).error?.issues ?? [];
  if (issue !== undefined)
    throw new StartupError('A name has 1 to 128 characters, and no colon or control characters.');
  return name;
}

/**
 * Name of the user whose credentials the API gets from its environment: CHAT_USERNAME, or the one `npm start` made when this is
 * its database. Undefined when neither is known here.
 */
export function firstName({ CHAT_USERNAME, DATABASE_URL, DATA_DIR }: Config): string | undefined {
  return CHAT_USERNAME ?? (DATABASE_URL === undefined ? generatedName(DATA_DIR) : undefined);
}

/** Default owner of a token and author of a post: the same as for the tokens of the environment. */
export const ownerByDefault = (config: Config): string => firstName(config) ?? defaultOwner(config);

/** `npm start` writes `name:secret` to this file. */
function generatedName(dataDir: string): string | undefined {
  try {
    return /^([^:]+):/.exec(readFileSync(join(dataDir, 'chat-credentials'), 'utf8'))?.[1];
  } catch {
    // It does not exist, or we may not read it.
    return undefined;
  }
}
