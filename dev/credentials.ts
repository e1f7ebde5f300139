import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from '../shared/config.js';

/** The chat user of `npm start`. */
export interface ChatCredentials {
  username: string;
  password: string;
  /** Holds `name:secret` on one line, as `curl -u` takes it; absent when the environment names the user. */
  file: string | undefined;
}

/** The user that the environment names, else the one made at the first start and kept in the data folder. */
export function chatCredentials(environment: Environment, dataDir: string): ChatCredentials {
  const { CHAT_USERNAME, CHAT_PASSWORD } = environment;
  if (CHAT_USERNAME && CHAT_PASSWORD)
    return { username: CHAT_USERNAME, password: CHAT_PASSWORD, file: undefined };
  const file = join(dataDir, 'chat-credentials');
  if (!existsSync(file)) {
    writeFileSync(file, `demo:${randomBytes(18).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' });
  }
  const [username = '', password = ''] = readFileSync(file, 'utf8').trim().split(':');
  return { username, password, file };
}
