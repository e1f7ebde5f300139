import fc from 'fast-check';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../db/database/client.js';
import { PostStore } from '../../db/posts/post-store.js';
import { startTestDatabase, type TestDatabase } from '../support/database.js';
import { createRecordingLog } from '../support/recording-log.js';
import { fields } from './post-stores.js';

let server: TestDatabase;
beforeAll(async () => {
  server = await startTestDatabase();
});
afterAll(() => server.stop());

const longest = 262_144;

/** A text of the most characters a post may have, made of one part again and again. */
const filled = (part: string) => {
  const characters = Array.from(part);
  return Array.from({ length: longest }, (_, n) => characters[n % characters.length]).join('');
};

/** Processor time that PostgreSQL takes to make the vector of a content, in milliseconds. */
async function costOf(content: string): Promise<number> {
  let cost = 0;
  const client = postgres(server.url, {
    max: 1,
    connection: { client_min_messages: 'log', log_statement_stats: true, statement_timeout: 10_000 },
    // One for each message of the protocol; the server's total of all of them stands in brackets.
    onnotice: ({ detail = '' }) => {
      const [, user = 0, system = 0] = /^!\s+([\d.]+) s user, ([\d.]+) s system,/m.exec(detail) ?? [];
      cost += (Number(user) + Number(system)) * 1000;
    },
  });
  try {
    await client`select length(post_search_vector(null, ${content}))`;
  } finally {
    await client.end();
  }
  expect(cost).toBeGreaterThan(0);
  return cost;
}

const pieces = [
  ...'aZ1e_-./@:&+~?#=%;<>"\'\\, \n',
  ...['é', '漢', '\u0301', 'ा', 'İ', '𠀀', '🎉', '\u00A0', '\u2003'],
  ...['http://', 'aa.aa', '<!--', '-->', '<a ', '<script>', '<!D', '&#x1'],
];
const parts = fc
  .array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 8 })
  .map((some) => some.join(''));

describe('the search vector of the longest post', () => {
  /** A second, or on a slow machine ten times the time of ordinary words; a quadratic cost is far above that. */
  let most: number;
  beforeAll(async () => {
    most = Math.max(1000, 10 * (await costOf(filled('some words '))));
  });

  const words =
    'a_ 1_ a- a-1- é.é- a. aa. ./ /~ ~/ a@ a@aa. a: & &a 1e + <!-- <!--a--> <script> <!D < --> http:// aa.aa/';
  const odd = ['<a "', '<a ">', '<a "\\"', '漢', 'aा-', 'a_\u2003', 'a_🎉', '\u0301', 'a_^', 'a_`', 'a_\\'];

  it.each([...words.split(' '), ...odd, 'snake_case_name_', 'a'])(
    'is made in about a second at most: %j',
    async (part) => {
      expect(await costOf(filled(part))).toBeLessThan(most);
    },
  );

  it('is made soon enough for the post to be stored and found', async () => {
    const database = openDatabase({ url: server.url, poolSize: 1, log: createRecordingLog().log });
    const store = new PostStore(database);
    const { post } = await store.create(fields({ content: filled('snake_case_name_') }));
    const found = await store.list({ limit: 1, drafts: false, search: 'snake_case_name' });
    expect(found.posts[0]?.id).toBe(post.id);
    await database.close();
  });

  it('is made in about a second at most, whatever the text repeats', async () => {
    const isQuick = async (part: string) => {
      expect(await costOf(filled(part))).toBeLessThan(most);
    };
    await fc.assert(fc.asyncProperty(parts, isQuick), { numRuns: 40, endOnFailure: true });
  });
});
