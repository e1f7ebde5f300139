import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, ConfigError } from '../shared/config/config.js';

/** A `file` holds `name:secret`, as `curl -u` takes it, or a token; what the environment names has none. */
export type StartCredentials = ReturnType<typeof startCredentials>;

/** The users and tokens that the environment names, else those of the first start, kept in the data folder. */
export function startCredentials(config: Config) {
  const chat = credentialsOf('CHAT', config, 'demo');
  const admin = credentialsOf('ADMIN', config, chat.username === 'admin' ? 'operator' : 'admin');
  if (admin.username === chat.username) {
    const files = [admin.file, chat.file].flatMap((file) => file ?? []).join(' or ');
    throw new ConfigError([`ADMIN_USERNAME: must not be that of the chat user; delete ${files} for another`]);
  }
  const tokens = { blog: tokenOf('BLOG', config), chat: tokenOf('CHAT', config) };
  return { credentials: chat, admin, tokens };
}

/** `name` is for a user that is made. */
function credentialsOf(prefix: 'CHAT' | 'ADMIN', config: Config, name: string) {
  const username = config[`${prefix}_USERNAME`];
  const password = config[`${prefix}_PASSWORD`];
  if (username && password) return { username, password, file: undefined };
  const [set, unset] = username ? ['USERNAME', 'PASSWORD'] : ['PASSWORD', 'USERNAME'];
  if (username || password)
    throw new ConfigError([`${prefix}_${unset}: must be set together with ${prefix}_${set}`]);
  const file = join(config.DATA_DIR, `${prefix.toLowerCase()}-credentials`);
  const line = keptLine(file, () => `${name}:${randomBytes(18).toString('base64url')}`);
  const [, keptName, secret] = /^([^:]+):(.{16,})$/.exec(line) ?? [];
  if (keptName && secret) return { username: keptName, password: secret, file };
  throw new ConfigError([`DATA_DIR: ${file} does not hold name:secret; delete it to get a new user`]);
}

function tokenOf(prefix: 'BLOG' | 'CHAT', config: Config) {
  const token = config[`${prefix}_TOKEN`];
  if (token) return { token, file: undefined };
  const file = join(config.DATA_DIR, `${prefix.toLowerCase()}-token`);
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
