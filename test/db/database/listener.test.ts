import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Database, openDatabase } from '../../../db/database/client.js';
import { sql } from '../../../db/database/drizzle.js';
import { openTestDatabase, type TestDatabase } from '../../support/database.js';
import { withLag } from '../../support/lateness.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { openWire } from '../../support/wire.js';

let server: TestDatabase & { database: Database };

beforeAll(async () => {
  server = await openTestDatabase();
});

afterAll(async () => {
  await server.stop();
});

/** Listens through a wire, and gives what was called, in order: `next` waits for the next call. */
async function listen({ frozen = false } = {}) {
  const wire = await openWire(Number(new URL(server.url).port));
  if (frozen) wire.freeze();
  const url = new URL(server.url);
  url.port = String(wire.port);
  const { log, lines } = createRecordingLog();
  const database = openDatabase({ url: url.href, poolSize: 1, log });
  onTestFinished(async () => {
    await database.close();
    await wire.close();
  });
  const calls = new TransformStream<string, string>({}, { highWaterMark: 100 });
  const writer = calls.writable.getWriter();
  const reader = calls.readable.getReader();
  database.listen('news of "all"', {
    onListen: () => void writer.write('listen'),
    onNotify: () => void writer.write('notify'),
  });
  return { database, wire, lines, next: async () => (await reader.read()).value };
}

const notify = () => server.database.run((db) => db.execute(sql`select pg_notify('news of "all"', '')`));
const listeners = sql`from pg_stat_activity
  where datname = current_database() and application_name = 'quillgate listener'`;

describe('listen', () => {
  it('tells that it listens, and then of each notification', async () => {
    const { next } = await listen();

    expect(await next()).toBe('listen');
    await notify();
    expect(await next()).toBe('notify');
    await notify();
    expect(await next()).toBe('notify');
  });

  it('listens again when its connection is cut', async () => {
    const { next } = await listen();
    expect(await next()).toBe('listen');

    for (let time = 0; time < 3; time += 1) {
      await server.database.run((db) => db.execute(sql`select pg_terminate_backend(pid) ${listeners}`));
      expect(await next()).toBe('listen');
    }

    await notify();
    expect(await next()).toBe('notify');
  });

  it('listens again after the server was silent', async () => {
    const { next, wire, lines } = await listen();
    expect(await next()).toBe('listen');
    wire.freeze();
    await vi.waitUntil(() => lines.some((line) => line.code === 'NO_ANSWER'), patience);
    // onListen stands for the missed notifications.
    await notify();
    wire.thaw();

    expect(await next()).toBe('listen');
    await notify();
    expect(await next()).toBe('notify');
  });

  it('ends with the database within about a second, also when the server is silent', async () => {
    const { database, next, wire } = await listen();
    expect(await next()).toBe('listen');
    wire.freeze();
    const startedAt = performance.now();

    const { lagMs } = await withLag(() => database.close());

    expect(performance.now() - startedAt).toBeLessThan(1200 + lagMs);
  });
});
