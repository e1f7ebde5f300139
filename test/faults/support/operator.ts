import pg from 'pg';
import type { Books } from './books.js';

/** Works on the deployment's database past its programs; ends with the case. */
export async function openOperator(books: Books): Promise<pg.Client> {
  const connectionString = books.deployment.stores.DATABASE_URL;
  const client = new pg.Client({ connectionString, application_name: 'operator' });
  await client.connect();
  books.release(() => client.end());
  return client;
}
