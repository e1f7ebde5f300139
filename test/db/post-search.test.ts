import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { sql } from '../../db/database/drizzle.js';
import { PostStore } from '../../db/posts/post-store.js';
import { openTestDatabase } from '../support/database.js';
import { fields } from './post-stores.js';

const { database, stop } = await openTestDatabase();
afterAll(stop);
const store = new PostStore(database);

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
    ['client', 'words with a slash', 'a client/server model'],
    ['server', 'words with a slash', 'a client/server model'],
    ['client/server', 'words with a slash', 'a client/server model'],
    ['"client/server model"', 'words with a slash', 'a client/server model'],
    ['"server model"', 'words with a slash', 'a client/server model'],
    ['tcp', 'words with a slash', 'by TCP/IP.'],
    ['ip', 'words with a slash', 'by TCP/IP.'],
    ['länge', 'words with a slash', 'Größe/Länge'],
    ['hosts', 'a path', 'in `/etc/hosts`'],
    ['posts', 'an address', 'see https://example.com/my/posts?q=1'],
    ['4', 'a number behind a hyphen', 'with GPT-4'],
    ['"gpt 4"', 'a number behind a hyphen', 'with GPT-4'],
    ['gpt-4', 'a number behind a hyphen', 'with GPT-4'],
    ['café', 'decomposed letters', 'a cafe\u0301'],
    ['tree', 'an apostrophe', "the tree's leaves"],
  ])('finds %s in %s', async (search, _, content) => {
    expect(await finds(search, { content })).toBe(true);
  });

  it('finds it in a title', async () => {
    expect(await finds('client', { title: 'Client/Server', content: 'Text' })).toBe(true);
    expect(await finds('half-open', { title: 'Half-open breakers', content: 'Text' })).toBe(true);
  });

  it('finds nothing in attributes and comments', async () => {
    expect(await finds('lead', { content: '<p class="lead">Text</p>' })).toBe(false);
    expect(await finds('client', { content: '<a href="client/server">Text</a>' })).toBe(false);
    expect(await finds('other -server', { content: 'other client/server' })).toBe(false);
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

it('finds old posts by the rules of today once the statement of docs/blog.md has run, without a new version', async () => {
  const run = (statement: string) => database.run((db) => db.execute(sql.raw(statement)));
  const searchOf = (migration: string) =>
    readFileSync(`db/migrations/${migration}.sql`, 'utf8').replace(
      'CREATE FUNCTION',
      'CREATE OR REPLACE FUNCTION',
    );
  await run(searchOf('0000_search-vector'));
  const { post } = await store.create(fields({ content: 'an apple/pear tree, a cafe\u0301' }));
  await run(searchOf('0010_search-words'));
  const search = async (words: string) =>
    (await store.list({ limit: 1, drafts: false, search: words })).posts;
  expect(await search('pear')).toEqual([]);
  const [, statement = ''] = /^( {4}DO .*?\$\$;)$/ms.exec(readFileSync('docs/blog.md', 'utf8')) ?? [];
  await run(statement);
  expect([await search('pear'), await search('café tree')]).toEqual([[post], [post]]);
});

it('finds a post by its new text alone after a patch', async () => {
  const { post } = await store.create(fields({ content: 'formerly zebras' }));
  await store.patch(post.id, { content: 'now okapis' }, {});
  const idsFor = async (search: string) =>
    (await store.list({ limit: 1, drafts: false, search })).posts.map(({ id }) => id);
  expect([await idsFor('zebras'), await idsFor('okapis')]).toEqual([[], [post.id]]);
});
