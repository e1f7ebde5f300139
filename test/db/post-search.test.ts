import fc from 'fast-check';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../db/database/client.js';
import { PostStore } from '../../db/posts/post-store.js';
import { startTestDatabase, type TestDatabase } from '../support/database.js';
import { createRecordingLog } from '../support/recording-log.js';
import { fields } from './post-stores.js';

let server: TestDatabase;
let database: Database;
let store: PostStore;

beforeAll(async () => {
  server = await startTestDatabase();
  database = openDatabase({ url: server.url, poolSize: 2, log: createRecordingLog().log });
  store = new PostStore(database);
});

afterAll(async () => {
  await database.close();
  await server.stop();
});

const finds = async (
  search: string,
  { content, title = null }: { content: string; title?: string | null },
) => {
  const { post } = await store.create(fields({ content, title }));
  const found = await store.list({ limit: 1, drafts: false, search });
  return found.posts[0]?.id === post.id;
};

/** A line without blanks, as of a log or of JSON. */
const line = `{"id":"${'x'.repeat(90)}","host":"example.com","names":["a_long_snake_case_name","half-open"]}`;

describe('the search for a word', () => {
  it.each([
    ['snake_case_name', 'code', 'set snake_case_name to one'],
    ['case', 'code', 'set snake_case_name to one'],
    ['well-known', 'a hyphenated word', 'the well-known queue'],
    ['known', 'a hyphenated word', 'the well-known queue'],
    ['example.com', 'an address', 'see https://example.com/a/path?q=1'],
    ['example.com/a/path?q=1', 'an address', 'see https://example.com/a/path?q=1'],
    ['ada@example.com', 'a mail address', 'mail to ada@example.com'],
    ['src/db/posts.ts', 'a path', 'in src/db/posts.ts'],
    ['"durable queue"', 'HTML', '<p class="lead">a durable <b>queue</b></p>'],
    ['unended', 'an unended comment', 'a comment <!-- that is unended'],
    ['later', 'a text with a comment', 'a <!-- comment --> and later'],
    ['example.com', 'a long line', line],
    ['snake_case_name', 'a long line', line],
    ['half-open', 'a long line', line],
    ['name', 'an endless word', 'snake_case_name_'.repeat(1000)],
    ['"case name snake"', 'an endless word', 'snake_case_name_'.repeat(1000)],
    ['example.com', 'a long address', `https://example.com/${'deep/'.repeat(100)}`],
    ['later', 'a text behind an endless word', `${'a_'.repeat(5000)} later`],
  ])('finds %s in %s', async (search, _, content) => {
    expect(await finds(search, { content })).toBe(true);
  });

  it('finds it in a title', async () => {
    expect(await finds('half-open', { title: 'Half-open breakers', content: 'Text' })).toBe(true);
  });

  it('finds nothing in attributes and comments', async () => {
    expect(await finds('lead', { content: '<p class="lead">Text</p>' })).toBe(false);
    expect(await finds('secret', { content: 'Text <!-- a\nsecret --> and text' })).toBe(false);
  });
});

describe('the limits of the search, as docs/blog.md says them,', () => {
  it.each([
    ['Queue', 'Queues queueing', true],
    ['quill', 'Quillgate', false],
    ['Haus', 'Häuser', false],
    ['the', 'the text', false],
    ['"to be or not to be"', 'to be or not to be', false],
    ['the who concert', 'a concert', true],
    ['"state of the art"', 'a state of the art engine', true],
    ['cafe', 'a café', false],
    ['café', 'a cafe', false],
    ['CAFÉ', 'a café', true],
    ['Node.js', 'with node.js', true],
    ['node', 'with Node.js', false],
    ['node.js', 'with Node', false],
    ['node or node.js', 'with Node.js', true],
    ['日本', '日本語を学ぶ', false],
    ['日本語を学ぶ', '日本語を学ぶ', true],
    ['日本語', '日本語、を学ぶ', true],
  ])('are such that %j finds %j: %s', async (search, content, found) => {
    expect(await finds(search, { content })).toBe(found);
  });
});

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
  /** A second, or on a slow machine ten times what ordinary words take; what grows with the square takes hundreds of times as long. */
  let most: number;
  beforeAll(async () => {
    most = Math.max(1000, 10 * (await costOf(filled('some words '))));
  });

  it.each([
    ...[
      'a_',
      '1_',
      'a-',
      'a-1-',
      'é.é-',
      'a.',
      'aa.',
      './',
      '/~',
      '~/',
      'a@',
      'a@aa.',
      'a:',
      '&',
      '&a',
      '1e',
      '+',
    ],
    ...[
      '<!--',
      '<!--a-->',
      '<a "',
      '<a ">',
      '<a "\\"',
      '<script>',
      '<!D',
      '<',
      '-->',
      'http://',
      'aa.aa/',
      '漢',
    ],
    ...['snake_case_name_', 'a', 'aा-', 'a_\u2003', 'a_🎉', '\u0301', 'a_^', 'a_`', 'a_\\'],
  ])('is made in about a second at most: %j', async (part) => {
    expect(await costOf(filled(part))).toBeLessThan(most);
  });

  it('is made soon enough for the post to be stored and found', async () => {
    expect(await finds('snake_case_name', { content: filled('snake_case_name_') })).toBe(true);
  });

  it('is made in about a second at most, whatever the text repeats', async () => {
    const isQuick = async (part: string) => {
      expect(await costOf(filled(part))).toBeLessThan(most);
    };
    await fc.assert(fc.asyncProperty(parts, isQuick), { numRuns: 40, endOnFailure: true });
  });
});
