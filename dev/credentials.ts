import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, ConfigError } from '../shared/config/config.js';

/** A user of `npm start`. */
export interface Credentials {
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

/** The chat user that the environment names, else the one made at the first start and kept in the data folder. */
export const chatCredentials = ({ CHAT_USERNAME, CHAT_PASSWORD, DATA_DIR }: Config): Credentials =>
  credentialsOf({
    ...{ prefix: 'CHAT', username: CHAT_USERNAME, password: CHAT_PASSWORD },
    ...{ file: join(DATA_DIR, 'chat-credentials'), name: 'demo' },
  });

/** The user of the console, in the same way; `chat` is the other one. */
export function adminCredentials(config: Config, chat: Credentials): Credentials {
  const { ADMIN_USERNAME, ADMIN_PASSWORD, DATA_DIR } = config;
  const admin = credentialsOf({
    ...{ prefix: 'ADMIN', username: ADMIN_USERNAME, password: ADMIN_PASSWORD },
    ...{ file: join(DATA_DIR, 'admin-credentials'), name: chat.username === 'admin' ? 'operator' : 'admin' },
  });
  if (admin.username !== chat.username) return admin;
  const files = [admin.file, chat.file].flatMap((file) => file ?? []).join(' or ');
  throw new ConfigError([`ADMIN_USERNAME: must not be that of the chat user; delete ${files} for another`]);
}

interface Wanted {
  prefix: 'CHAT' | 'ADMIN';
  /** As the environment has them. */
  username: string | undefined;
  password: string | undefined;
  /** Where they are kept when the environment has none, and the name that is made then. */
  file: string;
  name: string;
}

function credentialsOf({ prefix, username, password, file, name }: Wanted): Credentials {
  if (username && password) return { username, password, file: undefined };
  const [set, unset] = username ? ['USERNAME', 'PASSWORD'] : ['PASSWORD', 'USERNAME'];
  if (username || password)
    throw new ConfigError([`${prefix}_${unset}: must be set together with ${prefix}_${set}`]);
  const kept = /^([^:]+):(.{16,})$/.exec(
    keptLine(file, () => `${name}:${randomBytes(18).toString('base64url')}`),
  );
  if (kept?.[1] && kept[2]) return { username: kept[1], password: kept[2], file };
  throw new ConfigError([`DATA_DIR: ${file} does not hold name:secret; delete it to get a new user`]);
}

/** The token for posts: the environment's, else the one of the first start, kept in the data folder. */
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
