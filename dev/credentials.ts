import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, ConfigError } from '../shared/config/config.js';

/** The chat user of `npm start`. */
export interface ChatCredentials {
  username: string;
  password: string;
  /** Holds `name:secret` on one line, as `curl -u` takes it; absent when the environment names the user. */
  file: string | undefined;
}

/** An access token of `npm start`. */
export interface StartToken {
  token: string;
  /** Holds the token on one line; absent when the environment names it. */
  file: string | undefined;
}

/** The user that the environment names, else the one made at the first start and kept in the data folder. */
export function chatCredentials(config: Config): ChatCredentials {
  const { CHAT_USERNAME: username, CHAT_PASSWORD: password, DATA_DIR } = config;
  if (username && password) return { username, password, file: undefined };
  if (username) throw new ConfigError(['CHAT_PASSWORD: must be set together with CHAT_USERNAME']);
  if (password) throw new ConfigError(['CHAT_USERNAME: must be set together with CHAT_PASSWORD']);
  const file = join(DATA_DIR, 'chat-credentials');
  const kept = /^([^:]+):(.{16,})$/.exec(
    keptLine(file, () => `demo:${randomBytes(18).toString('base64url')}`),
  );
  if (kept?.[1] && kept[2]) return { username: kept[1], password: kept[2], file };
  throw new ConfigError([`DATA_DIR: ${file} does not hold name:secret; delete it to get a new user`]);
}

/** The token for posts: the one that the environment names, else the one made at the first start and kept in the data folder. */
export const blogToken = ({ BLOG_TOKEN, DATA_DIR }: Config): StartToken =>
  startToken(BLOG_TOKEN, join(DATA_DIR, 'blog-token'));

/** The token for chat, in the same way. */
export const chatToken = ({ CHAT_TOKEN, DATA_DIR }: Config): StartToken =>
  startToken(CHAT_TOKEN, join(DATA_DIR, 'chat-token'));

function startToken(token: string | undefined, file: string): StartToken {
  if (token) return { token, file: undefined };
  const kept = keptLine(file, () => randomBytes(30).toString('base64url'));
  if (/^[\x21-\x7e]{32,}$/.test(kept)) return { token: kept, file };
  throw new ConfigError([`DATA_DIR: ${file} does not hold a token; delete it to get a new one`]);
}

/** The line that the file holds; makes the file, for its owner's eyes alone, when it is not there. */
function keptLine(file: string, make: () => string): string {
  if (!existsSync(file)) writePrivateFile(file, `${make()}\n`);
  return readFileSync(file, 'utf8').trim();
}

/** Renamed when complete: a start that is killed here must not leave half a secret behind. */
export function writePrivateFile(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}
