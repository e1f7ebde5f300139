import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, ConfigError } from '../shared/config.js';

/** The chat user of `npm start`. */
export interface ChatCredentials {
  username: string;
  password: string;
  /** Holds `name:secret` on one line, as `curl -u` takes it; absent when the environment names the user. */
  file: string | undefined;
}

/** The user that the environment names, else the one made at the first start and kept in the data folder. */
export function chatCredentials(config: Config): ChatCredentials {
  const { CHAT_USERNAME: username, CHAT_PASSWORD: password, DATA_DIR } = config;
  if (username && password) return { username, password, file: undefined };
  if (username) throw new ConfigError(['CHAT_PASSWORD: must be set together with CHAT_USERNAME']);
  if (password) throw new ConfigError(['CHAT_USERNAME: must be set together with CHAT_PASSWORD']);
  return keptCredentials(join(DATA_DIR, 'chat-credentials'));
}

function keptCredentials(file: string): ChatCredentials {
  if (!existsSync(file)) {
    // Renamed when complete: a start that is killed here must not leave an empty password behind.
    writeFileSync(`${file}.new`, `demo:${randomBytes(18).toString('base64url')}\n`, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }
  const [, username, password] = /^([^:]+):(.{16,})$/.exec(readFileSync(file, 'utf8').trim()) ?? [];
  if (username && password) return { username, password, file };
  throw new ConfigError([`DATA_DIR: ${file} does not hold name:secret; delete it to get a new user`]);
}
