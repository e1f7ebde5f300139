import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../db/database/client.js';
import { sql } from '../../db/database/drizzle.js';
import { parseConfig } from '../../shared/config/config.js';
import { Failure } from '../../shared/failures.js';
import { reasonOf } from '../../shared/queue/queue-store.js';
import { migrateQueueStore, openQueueStore } from '../../shared/queue/stores/open.js';
import { makeAuthority } from '../support/certificates.js';
import { generousLimits, startTestDatabase, type TestDatabase } from '../support/database.js';
import { offerTls, query } from '../support/offered-tls.js';
import { createRecordingLog } from '../support/recording-log.js';

let server: TestDatabase;
/** A server whose certificate is for the name `localhost`. */
let withTls: TestDatabase;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'quillgate-tls-'));
  const made = makeAuthority();
  writeFileSync(join(folder, 'authority.crt'), made.certificate);
  writeFileSync(join(folder, 'stranger.crt'), makeAuthority('Stranger').certificate);
  [server, withTls] = await Promise.all([startTestDatabase(), startTestDatabase({ ownServer: true })]);
  await offerTls(withTls.url, made.issue('localhost'));
});

afterAll(async () => {
  await Promise.all([server?.stop(), withTls?.stop()]);
  rmSync(folder, { recursive: true });
});

function changed(url: string, change: (url: URL) => void): string {
  const other = new URL(url);
  change(other);
  return other.href;
}
const at = (host: string, query: string) =>
  changed(withTls.url, (url) => Object.assign(url, { hostname: host, search: query }));

const { log } = createRecordingLog();

const open = (url: string) =>
  openDatabase({ url, poolSize: 1, log, ...generousLimits, checkMs: generousLimits.answerMs });

/** Whether the connection is encrypted that a client makes, or what it fails with. */
const clients: Record<string, (url: string) => Promise<unknown>> = {
  async blog(url) {
    const database = open(url);
    try {
      const { database: found } = await database.check();
      return found.status === 'ok' ? await newestIsEncrypted() : found.detail;
    } finally {
      await database.close();
    }
  },
  async queue(url) {
    const config = parseConfig({ DATABASE_URL: url }, 'config');
    const store = openQueueStore(config, log);
    try {
      await migrateQueueStore(config);
      await store.check();
      return await newestIsEncrypted();
    } catch (error) {
      return reasonOf(error);
    } finally {
      await store.close();
    }
  },
};

async function newestIsEncrypted(): Promise<boolean | undefined> {
  const [row] = await query<{ ssl: boolean }>(
    withTls.url,
    `select ssl from pg_stat_ssl join pg_stat_activity using (pid)
     where application_name = 'quillgate' order by backend_start desc limit 1`,
  );
  return row?.ssl;
}

describe.each(Object.entries(clients))('the client of the %s', (name, connect) => {
  it.each([
    ['127.0.0.1', '', false],
    ['127.0.0.1', '?sslmode=disable', false],
    ['127.0.0.1', '?sslmode=require&uselibpqcompat=true&channel_binding=require&keepalives=1', true],
    ['127.0.0.1', '?sslmode=prefer', true],
    ['127.0.0.1', '?sslmode=no-verify', true],
    ['127.0.0.1', '?sslmode=verify-ca&sslrootcert=authority.crt', true],
    ['127.0.0.1', '?sslmode=require&sslrootcert=authority.crt', true],
    ['localhost', '?sslmode=verify-full&sslrootcert=authority.crt', true],
    ['localhost', '?sslmode=verify-full', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    ['localhost', '?sslmode=require&sslrootcert=stranger.crt', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    ['127.0.0.1', '?sslmode=verify-full&sslrootcert=authority.crt', 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ])('a server at %s with %j -> encrypted, in clear, or refused: %s', async (host, parameters, expected) => {
    const found = await connect(at(host, parameters.replace(/(?<=sslrootcert=)/, `${folder}/`)));

    if (typeof expected === 'string') expect(found).toContain(`(${expected})`);
    else expect(found).toBe(expected);
  });

  it.each(['prefer', 'require'])('a server without TLS (%s) -> nothing is sent in clear', async (mode) => {
    const found = await connect(changed(server.url, (url) => (url.search = `?sslmode=${mode}`)));

    // pg has no code for it.
    expect(found).toBe(
      name === 'blog' ? 'the database does not offer TLS (TLS_NOT_OFFERED)' : 'the store cannot be reached',
    );
  });
});

describe('openDatabase', () => {
  it('a server that goes away while TLS begins -> counts as trouble', async () => {
    const cutting = createServer((socket) =>
      socket.once('data', () => {
        socket.write('S');
        socket.once('data', () => socket.destroy());
      }),
    ).listen(0, '127.0.0.1');
    await once(cutting, 'listening');
    onTestFinished(() => void cutting.close());
    const { port } = cutting.address() as AddressInfo;
    const url = `postgres://127.0.0.1:${port}/x?sslmode=require`;
    const database = open(url);
    onTestFinished(() => database.close());

    const error = await database.run((db) => db.execute(sql`select 1`)).catch((reason: unknown) => reason);

    expect(error).toBeInstanceOf(Failure);
    expect((await database.check()).database).toEqual({
      status: 'failing',
      detail: 'the database cannot be reached (ECONNRESET)',
    });
  });
});
