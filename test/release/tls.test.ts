import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { prepareStores } from '../../dev/stores.js';
import { parseConfig } from '../../shared/config/config.js';
import { reasonOf } from '../../shared/queue/queue-store.js';
import { openQueueStore } from '../../shared/queue/stores/open.js';
import { makeAuthority } from '../support/certificates.js';
import { startEmptyDatabase, type TestDatabase } from '../support/database.js';
import { type Deployment, startDeployment } from '../support/deployment.js';
import { offerTls, query } from '../support/offered-tls.js';
import { patience, patienceMs } from '../support/patience.js';
import { createRecordingLog } from '../support/recording-log.js';
import { findRedisBinary } from '../support/redis-binary.js';
import { type RedisCertificates, type RedisProcess, startRedisProcess } from '../support/redis-process.js';
import { startTopology } from '../support/redis-topologies.js';

let folder: string;
let database: TestDatabase;
/** For servers at 127.0.0.1. */
let certificates: RedisCertificates;
let databaseUrl: string;

const file = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const trusting = (url: string, authority: string) => {
  const changed = new URL(url);
  changed.search = `?sslmode=verify-full&sslrootcert=${encodeURIComponent(authority)}`;
  return changed.href;
};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'quillgate-tls-'));
  const made = makeAuthority();
  const own = made.issue();
  certificates = {
    authority: file('authority.crt', made.certificate),
    certificate: file('server.crt', own.certificate),
    key: file('server.key', own.key),
  };
  file('stranger.crt', makeAuthority('Stranger').certificate);
  database = await startEmptyDatabase({ ownServer: true });
  await offerTls(database.url, own);
  databaseUrl = trusting(database.url, certificates.authority);
});
afterAll(async () => {
  await database?.stop();
  rmSync(folder, { recursive: true });
});

const stranger = () => join(folder, 'stranger.crt');
const password = 'canary-of-redis-2302585092';
/** Refused by everything that shows its reason. */
const untrusted = /shows a certificate that is not trusted \(\w+\)/;

async function readyz({ url }: { url: string }): Promise<{ status: number; text: string }> {
  const response = await fetch(`${url}/readyz`);
  return { status: response.status, text: await response.text() };
}

/** Chat and blog, from end to end. */
async function expectToWork(deployment: Deployment): Promise<void> {
  expect((await deployment.chat({})).status).toBe(200);
  const post = await deployment.blog('/blogs', { json: { content: 'Hello' } });
  expect(post.status).toBe(201);
  expect((await readyz(deployment)).status).toBe(200);
}

describe('PostgreSQL with sslmode=verify-full', () => {
  it('→ carries chat and blog, all of it encrypted', async () => {
    const store = { kind: 'postgres', url: databaseUrl, databaseUrl } as const;
    const deployment = await startDeployment({ store });
    onTestFinished(() => deployment.stop());
    await expectToWork(deployment);
    const connections = await query<{ ssl: boolean }>(
      database.url,
      `select ssl from pg_stat_ssl join pg_stat_activity using (pid)
       where datname = ${`'${new URL(deployment.stores.DATABASE_URL ?? '').pathname.slice(1)}'`}`,
    );
    expect(connections.length).toBeGreaterThan(3);
    expect(connections.filter(({ ssl }) => !ssl)).toEqual([]);
  });

  it('has a certificate of another authority → is refused', async () => {
    const url = trusting(database.url, stranger());
    await expect(prepareStores(parseConfig({ DATABASE_URL: url }, 'config'), url)).rejects.toThrow(
      /^Configuration problems:\n {2}DATABASE_URL: the database shows a certificate that is not trusted \(\w+\)$/,
    );
  });
});

describe.skipIf(findRedisBinary() === undefined)('Redis with rediss://', () => {
  let redis: RedisProcess;
  const urlWith = (authority: string) =>
    `rediss://:${password}@127.0.0.1:${redis.port}?sslrootcert=${encodeURIComponent(authority)}`;

  beforeAll(async () => {
    redis = await startRedisProcess({ password, certificates });
  });
  afterAll(() => redis?.stop());

  it('→ carries chat, on a server that speaks nothing but TLS', async () => {
    const store = { kind: 'postgres', url: databaseUrl, databaseUrl } as const;
    const variables = { REDIS_URL: urlWith(certificates.authority) };
    const deployment = await startDeployment({ store, variables });
    onTestFinished(() => deployment.stop());
    await expectToWork(deployment);
    expect((await readyz(deployment)).text).toContain('"store":"redis"');
    expect(String(await redis.command('DBSIZE'))).not.toBe('0');
  });

  it('has a certificate of another authority → is refused, and the reason is told without the password', async () => {
    const store = { kind: 'postgres', url: databaseUrl, databaseUrl } as const;
    const deployment = await startDeployment({
      store,
      workers: 0,
      variables: { REDIS_URL: urlWith(stranger()) },
      withoutStore: async () => undefined,
    });
    onTestFinished(() => deployment.stop());
    const { status, text } = await readyz(deployment);
    expect(status).toBe(503);
    expect(text).toMatch(untrusted);
    const { body } = await deployment.chat({});
    expect(body.code).toBe('queue_unavailable');
    expect(deployment.logs()).toMatch(untrusted);
    expect(deployment.logs() + text + JSON.stringify(body)).not.toContain(password);
  });

  it('has a certificate of another authority → ends npm start', async () => {
    const config = parseConfig({ REDIS_URL: urlWith(stranger()) }, 'config');
    await expect(prepareStores(config, databaseUrl)).rejects.toThrow(
      /^Configuration problems:\n {2}REDIS_URL: the store shows a certificate that is not trusted \(\w+\)$/,
    );
  });

  it.each(['cluster', 'sentinel'] as const)('is a %s → carries a queue', async (kind) => {
    const topology = await startTopology[kind]({ certificates });
    onTestFinished(topology.stop);
    const open = (url: string) => {
      const store = openQueueStore(parseConfig({ REDIS_URL: url }, 'config'), createRecordingLog().log);
      onTestFinished(() => store.close());
      return store;
    };
    const store = open(topology.url);
    expect(await store.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
    await store.createQueue('chat-openai').add('chat', {}, { jobId: 'a-job' });
    const mistrusting = open(topology.url.replace('authority.crt', 'stranger.crt'));
    const reason = () => mistrusting.check().then(() => 'ready', reasonOf);
    await vi.waitFor(async () => expect(await reason()).toMatch(untrusted), patience);
  });
});
