import pg from 'pg';

/** For a server that may not be ours, or not be up. */
const probeTimeoutMs = 2_000;
/** For our own server, which is up: a busy machine is no reason to give up. */
const timeoutMs = 60_000;

/** Condition names of PostgreSQL's manual, appendix A. */
const invalidCatalogName = '3D000';
const duplicateDatabase = '42P04';
const uniqueViolation = '23505';
const refusedCredentials = ['28P01', '28000'];

/** The result of connecting: the database, a server without it, refused credentials, or no answer. */
export type ServerState = 'ready' | 'no database' | 'refused' | 'unreachable';

/** Connects to the database of the URL with the URL's credentials. */
export async function probeServer(url: string): Promise<ServerState> {
  try {
    await query(url, 'SELECT 1', probeTimeoutMs);
    return 'ready';
  } catch (error) {
    const code = conditionOf(error);
    if (code === invalidCatalogName) return 'no database';
    return refusedCredentials.includes(code) ? 'refused' : 'unreachable';
  }
}

/** The URL of another database on the same server. */
export function urlOfDatabase(url: string, name: string): string {
  const other = new URL(url);
  other.pathname = `/${encodeURIComponent(name)}`;
  return other.href;
}

/** Creates a database on the server of the URL unless it exists, and returns its URL. */
export async function createDatabase(url: string, name: string): Promise<string> {
  try {
    const statement = `CREATE DATABASE ${pg.escapeIdentifier(name)}`;
    await query(urlOfDatabase(url, 'postgres'), statement, timeoutMs);
  } catch (error) {
    // The second is the error of the slower of two simultaneous creations.
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
  // A lost connection is also reported here; the pending query rejects as well.
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
