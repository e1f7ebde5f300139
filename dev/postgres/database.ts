import pg from 'pg';

/** Of a server that may be somebody else's, or not be up. */
const answerTimeoutMs = 2_000;
/** Of ours, which is up: a busy machine is no reason to give up. */
const timeoutMs = 60_000;

/** Condition names of PostgreSQL's manual, appendix A. */
const invalidCatalogName = '3D000';
const duplicateDatabase = '42P04';
const uniqueViolation = '23505';
const refusedCredentials = ['28P01', '28000'];

/** How a server reacts to our credentials: it has the database, it lacks it, it is somebody else's, or it is silent. */
export type Answer = 'ready' | 'no database' | 'refused' | 'silent';

/** Asks the server of the URL for its database with the URL's credentials. */
export async function askServer(url: string): Promise<Answer> {
  try {
    await query(url, 'SELECT 1', answerTimeoutMs);
    return 'ready';
  } catch (error) {
    const code = conditionOf(error);
    if (code === invalidCatalogName) return 'no database';
    return refusedCredentials.includes(code) ? 'refused' : 'silent';
  }
}

/** The URL of another database on the same server. */
export function urlOfDatabase(url: string, name: string): string {
  const other = new URL(url);
  other.pathname = `/${encodeURIComponent(name)}`;
  return other.href;
}

/** Creates a database on the server of the URL unless it exists, and gives its URL. */
export async function createDatabase(url: string, name: string): Promise<string> {
  try {
    const statement = `CREATE DATABASE ${pg.escapeIdentifier(name)}`;
    await query(urlOfDatabase(url, 'postgres'), statement, timeoutMs);
  } catch (error) {
    // The second one is what the loser of two simultaneous creations gets.
    if (![duplicateDatabase, uniqueViolation].includes(conditionOf(error))) throw error;
  }
  return urlOfDatabase(url, name);
}

async function query(url: string, sql: string, connectTimeoutMs: number): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    ssl: false,
    connectionTimeoutMillis: connectTimeoutMs,
  });
  // A server that goes away while we are connected reports it here; the pending query rejects as well.
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query(sql);
  } finally {
    await client.end();
  }
}

function conditionOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
