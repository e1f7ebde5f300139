import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, defaultOwner } from '../shared/config/config.js';

/**
 * Name of the user whose credentials the API gets from its environment: that of CHAT_USERNAME, or the one that the `npm start` made whose
 * database this is. Undefined when nothing here tells.
 */
export function firstName({ CHAT_USERNAME, DATABASE_URL, DATA_DIR }: Config): string | undefined {
  return CHAT_USERNAME ?? (DATABASE_URL === undefined ? generatedName(DATA_DIR) : undefined);
}

/** Who owns a token and writes a post where nobody is named: the same as for the tokens of the environment. */
export const ownerWhereNoneIsNamed = (config: Config): string => firstName(config) ?? defaultOwner(config);

/** `npm start` leaves `name:secret` there. */
function generatedName(dataDir: string): string | undefined {
  try {
    return /^([^:]+):/.exec(readFileSync(join(dataDir, 'chat-credentials'), 'utf8'))?.[1];
  } catch {
    // Not there, or not for us to read: then nobody is known.
    return undefined;
  }
}
