import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Database } from '../../../db/database/client.js';
import { sql } from '../../../db/database/drizzle.js';
import { startListening } from '../../../db/database/listener.js';
import { parsePostgresUrl } from '../../../shared/urls/postgres-url.js';
import { openTestDatabase, type TestDatabase } from '../../support/database.js';
import { patience, patienceMs } from '../../support/patience.js';
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
async function listen({ answerMs = patienceMs } = {}) {
  const wire = await openWire(Number(new URL(server.url).port));
  const url = new URL(server.url);
  url.port = String(wire.port);
  const { log, lines } = createRecordingLog();
  const calls = new TransformStream<string, string>({}, { highWaterMark: 100 });
  const writer = calls.writable.getWriter();
  const reader = calls.readable.getReader();
  const hooks = {
    onListen: () => void writer.write('listen'),
    onNotify: () => void writer.write('notify'),
  };
  const listener = startListening({
    ...{ address: parsePostgresUrl(url.href), channel: 'news of "all"', hooks, log },
    ...{ betweenAttemptsMs: 1, heartbeatMs: 20, answerMs },
  });
  onTestFinished(async () => {
    await listener.close();
    await wire.close();
  });
  return { listener, wire, lines, next: async () => (await reader.read()).value };
}

const notify = () => server.database.run((db) => db.execute(sql`select pg_notify('news of "all"', '')`));
const listeners = sql`from pg_stat_activity
  where datname = current_database() and application_name = 'quillgate listener'`;

describe('listen', () => {
  it('a channel -> tells that it listens, and then of each notification', async () => {
    const { next } = await listen();

    expect(await next()).toBe('listen');
    await notify();
    expect(await next()).toBe('notify');
    await notify();
    expect(await next()).toBe('notify');
  });

  it('a connection that is cut -> listens again', async () => {
    const { next } = await listen();
    expect(await next()).toBe('listen');

    for (let time = 0; time < 3; time += 1) {
      await server.database.run((db) => db.execute(sql`select pg_terminate_backend(pid) ${listeners}`));
      expect(await next()).toBe('listen');
    }

    await notify();
    expect(await next()).toBe('notify');
  });

  it('a server that was silent -> listens again', async () => {
    const { next, wire, lines } = await listen({ answerMs: 200 });
    expect(await next()).toBe('listen');
    wire.freeze();
    lines.length = 0;
    await vi.waitUntil(() => lines.some((line) => line.code === 'NO_ANSWER'), patience);
    // onListen stands for the missed notifications.
    await notify();
    wire.thaw();

    expect(await next()).toBe('listen');
    await notify();
    await vi.waitUntil(async () => (await next()) === 'notify', patience);
  });

  it('a silent server -> ends without waiting for its answer', async () => {
    const { listener, next, wire } = await listen();
    expect(await next()).toBe('listen');
    wire.freeze();
    await listener.close();
  });
});
