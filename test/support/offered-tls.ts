import pg from 'pg';
import { vi } from 'vitest';
import type { MadeCertificate } from './certificates.js';
import { patience } from './patience.js';

/** Makes a PostgreSQL server offer TLS. The server writes the files itself, because it may run as another user. */
export async function offerTls(url: string, { certificate, key }: MadeCertificate): Promise<void> {
  const write = (text: string, name: string) =>
    query(
      url,
      `copy (select unnest(string_to_array(${pg.escapeLiteral(text.trim())}, e'\\n')))
       to program 'umask 077; cat > ${name}'`,
    );
  await write(certificate, 'server.crt');
  await write(key, 'server.key');
  await query(url, 'alter system set ssl = on');
  await query(url, 'select pg_reload_conf()');
  await vi.waitUntil(async () => (await query<{ ssl: string }>(url, 'show ssl'))[0]?.ssl === 'on', patience);
}

/** The rows of a statement, on a new connection. */
export async function query<Row extends pg.QueryResultRow>(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows;
  } finally {
    await client.end();
  }
}
