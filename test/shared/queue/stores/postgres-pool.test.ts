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

function open(url = database.url) {
  const { log } = createRecordingLog();
  const opened = openPostgresPool(url, { max: 4, session: {}, log });
  onTestFinished(opened.close);
  return opened;
}

/** As promised for connections that have died. */
const wellAfterMs = 10_000;

describe('openPostgresPool', () => {
  it('ends a connection that only listens, and those that are idle, when nothing comes back', async () => {
    const wire = await openWireTo(database.url);
    onTestFinished(wire.close);
    const { pool, connection } = open(wire.url);
    const listener = await pool.connect();
    await listener.query('listen something');
    await Promise.all([connection.query('select 1'), connection.query('select 1')]);
    expect(pool.idleCount).toBeGreaterThan(0);
    wire.swallow();
    const diedAt = performance.now();
    await once(listener, 'error');
    expect(performance.now() - diedAt).toBeLessThan(wellAfterMs);
    await vi.waitFor(() => expect(pool.idleCount).toBe(0), patience);
    listener.release(true);
    expect((await connection.query('select 1 as n')).rows).toEqual([{ n: 1 }]);
  });

  it('fails a query that is not answered, as one whose connection was lost', async () => {
    const { connection } = open();
    await expect(connection.query('select pg_sleep(60)')).rejects.toBeInstanceOf(ConnectionClosedError);
  });

  it('asks nothing while queries are under way, and lets them end', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on('warning', note);
    onTestFinished(() => void process.off('warning', note));
    const { pool } = open();
    const client = await pool.connect();
    // In time for the first question, and still under way.
    const sleeping = [client.query('select pg_sleep(2.5)'), client.query('select pg_sleep(2.5)')];
    await Promise.all(sleeping);
    expect(warnings).toEqual([]);
    client.release();
  });
});
