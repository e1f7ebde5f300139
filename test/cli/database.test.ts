import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { withDatabase } from '../../cli/database.js';
import { sql } from '../../db/database/drizzle.js';
import { startEmptyDatabase, startTestDatabase } from '../support/database.js';
import { makeFolder, plant } from '../support/folders.js';
import { complaintOf } from './output.js';

const server = await startTestDatabase();
afterAll(server.stop);

const use = (environment: Record<string, string>) => withDatabase(environment, async () => 'used');

describe('withDatabase', () => {
  it('takes DATABASE_URL, or else the address that npm start left', async () => {
    expect(await use({ DATA_DIR: plant({ 'database-url': `${server.url}\n` }) })).toBe('used');
    const DATA_DIR = plant({ 'database-url': 'postgres://127.0.0.1:1/none' });
    expect(await use({ DATA_DIR, DATABASE_URL: server.url })).toBe('used');
  });

  it('gives a statement more time than requests have, for a line to the database can be slow', async () => {
    const [limit] = await withDatabase({ DATABASE_URL: server.url }, (database) =>
      database.run((db) => db.execute<{ statement_timeout: string }>(sql`show statement_timeout`)),
    );
    expect(limit?.statement_timeout).toBe('29200ms');
  });

  it('says both ways when there is neither', async () => {
    const folder = makeFolder();
    expect(await complaintOf(use({ DATA_DIR: folder }))).toBe(
      `Nothing runs here: run npm start, which writes the address of its database to ${folder}/database-url, or set DATABASE_URL.`,
    );
  });

  it('does not repeat what stands in the file', async () => {
    const folder = plant({ 'database-url': 'canary' });
    expect(await complaintOf(use({ DATA_DIR: folder }))).toBe(
      `${folder}/database-url does not hold a postgres:// URL; npm start rewrites it.`,
    );
  });

  it('says in a sentence that no server listens, without the address', async () => {
    expect(await complaintOf(use({ DATABASE_URL: 'postgres://user:canary@127.0.0.1:1/db' }))).toBe(
      'The database cannot be used: the database cannot be reached (ECONNREFUSED).',
    );
  });

  it('says in a sentence that the schema is missing', async () => {
    const empty = await startEmptyDatabase();
    onTestFinished(empty.stop);
    expect(await complaintOf(use({ DATABASE_URL: empty.url }))).toBe(
      'The database cannot be used: the schema is missing or older than this release: run quillgate migrate.',
    );
  });
});
