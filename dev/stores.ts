import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf, errorOf } from '../db/database/errors.js';
import { migrateDatabase } from '../db/database/migrate.js';
import { type Config, ConfigError } from '../shared/config/config.js';
import { Misconfiguration, reasonOf } from '../shared/queue/queue-store.js';
import { migrateQueueStore, openQueueStore } from '../shared/queue/stores/open.js';
import { createLog } from '../shared/runtime/log.js';
import { isCertificateError } from '../shared/urls/store-url-parts.js';

const timeoutMs = 5000;

/**
 * Migrates the database and the queue's store and checks that they can be used, so that a wrong address is reported
 * here instead of the programs waiting for it for ever. Throws `ConfigError` for stores that the configuration names.
 */
export async function prepareStores(config: Config, databaseUrl: string): Promise<void> {
  const complete = { ...config, DATABASE_URL: databaseUrl };
  const database = config.DATABASE_URL && 'DATABASE_URL';
  await named({ variable: database, reasonOf: errorOf, work: migrateDatabase(databaseUrl) });
  const queue = config.REDIS_URL
    ? { variable: 'REDIS_URL', reasonOf: reasonOr('no Redis answers there') }
    : { variable: database, reasonOf: reasonOr('the queue cannot be kept there') };
  await named({ ...queue, work: prepareQueueStore(complete) });
}

async function prepareQueueStore(config: Config): Promise<void> {
  await migrateQueueStore(config);
  const store = openQueueStore(config, createLog({ program: 'start', level: 'silent' }));
  try {
    if (!(await store.whenReady(AbortSignal.timeout(timeoutMs)))) await store.check();
  } finally {
    await store.close();
  }
}

interface Named {
  variable: string | undefined;
  /** Describes a failure: messages of libraries can quote the address and its password. */
  reasonOf: (error: unknown) => string;
  work: Promise<unknown>;
}

/** Names the variable that a failure comes from; without one, the embedded store failed, and its error is passed on. */
async function named({ variable, reasonOf, work }: Named): Promise<void> {
  try {
    await work;
  } catch (cause) {
    throw variable ? new ConfigError([`${variable}: ${reasonOf(cause)}`]) : cause;
  }
}

const reasonOr =
  (words: string) =>
  (error: unknown): string => {
    if (error instanceof Misconfiguration) return error.message;
    const code = codeOf(error);
    if (code !== undefined && isCertificateError(code)) return reasonOf(error);
    return code === undefined ? words : `${words} (${code})`;
  };

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
