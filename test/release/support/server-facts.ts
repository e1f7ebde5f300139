import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { everyProcess, type SeenProcess } from './processes.js';

/** Runs one statement on the database of the URL and gives its rows. */
export async function run(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(sql)).rows as Record<string, unknown>[];
  } finally {
    await client.end();
  }
}

/** Process id of the server that runs on the cluster in the data folder. */
export function serverPid(dataDir: string): number {
  return Number.parseInt(readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8'), 10);
}

/** The processes of the server on the cluster in the data folder: the first one and its children. */
export function serverProcesses(dataDir: string): SeenProcess[] {
  const mark = `quillgate-${statSync(join(dataDir, 'postgres')).ino}`;
  return everyProcess().filter(({ command }) => command.includes(mark));
}
