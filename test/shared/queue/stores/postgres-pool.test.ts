import { once } from 'node:events';
import { ConnectionClosedError } from 'bullmq';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { openPostgresPool } from '../../../../shared/queue/stores/postgres-pool.js';
import { startEmptyDatabase, type TestDatabase } from '../../../support/database.js';
import { patience } from '../../../support/patience.js';
import { createRecordingLog } from '../../../support/recording-log.js';
import { openWireTo } from '../../../support/wire.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await startEmptyDatabase();
});
afterAll(() => database.stop());

function open(url = database.url, times = {}) {
  const { log } = createRecordingLog();
  const opened = openPostgresPool(url, { max: 4, session: {}, log, ...times });
  onTestFinished(opened.close);
  return opened;
}

describe('openPostgresPool', () => {
  it('a connection that only listens, of which nothing comes back -> is ended, and so are those that are idle', async () => {
    const wire = await openWireTo(database.url);
    onTestFinished(wire.close);
    const { pool, connection } = open(wire.url, { heartbeatMs: 400, answerMs: 400 });
    const listener = await pool.connect();
    await listener.query('listen something');
    await Promise.all([connection.query('select 1'), connection.query('select 1')]);
    expect(pool.idleCount).toBeGreaterThan(0);
    wire.swallow();
    await once(listener, 'error');
    await vi.waitFor(() => expect(pool.idleCount).toBe(0), patience);
    listener.release(true);
    expect((await connection.query('select 1 as n')).rows).toEqual([{ n: 1 }]);
  });

  it('a query that is not answered -> fails as one whose connection was lost', async () => {
    const { connection } = open(database.url, { heartbeatMs: 10, answerMs: 50 });
    await expect(connection.query('select pg_sleep(60)')).rejects.toBeInstanceOf(ConnectionClosedError);
  });

  it('queries that are under way -> nothing is asked, and they end', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on('warning', note);
    onTestFinished(() => void process.off('warning', note));
    const { pool } = open(database.url, { heartbeatMs: 10 });
    const client = await pool.connect();
    // The first question is due during both.
    const sleeping = [client.query('select pg_sleep(0.2)'), client.query('select pg_sleep(0.2)')];
    await Promise.all(sleeping);
    expect(warnings).toEqual([]);
    client.release();
  });
});
