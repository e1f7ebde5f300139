import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { etagOf, expectedVersions } from '../../api/blog/post-etag.js';
import type { PostFields } from '../../db/posts/post-creation.js';
import { PostStore } from '../../db/posts/post-store.js';
import { openTestDatabase } from '../support/database.js';
import { exportJson, exportTree, forgetPosts, importFrom } from './post-commands.js';
import { plant, readTree } from './post-trees.js';

const { database, url, stop } = await openTestDatabase();
afterAll(stop);
beforeEach(() => forgetPosts(database));
const environment = { DATABASE_URL: url };
const store = new PostStore(database);

/** As people, editors and other programs write them. */
const files = {
  'plain.md': 'No front matter at all, and no final newline',
  'comments.md':
    '---\n# a comment\ntags: [z, a]   # another\n\ntitle:   "Odd   order"\nlayout: post\nextra: {a: [1, 2]}\n---\ntext\n',
  'crlf.md': '---\r\ntitle: Windows\r\n---\r\n\r\nline\r\nline\r\n',
  'bom.md': '\uFEFF---\ntitle: Mark\n---\ntext\n',
  'bom-alone.md': '\uFEFFtext',
  'mixed.md': '---\r\ntitle: Mixed\n---  \n\r\n\n\n  indented\r\n\t\n\n',
  'rule.md': '---\nnot closed, a rule\n',
  'empty-head.md': '---\n---\ntext',
  'deep/er/nested.md': '---\ntitle: Nested\n---\ntext\n',
  'deep/er/index.md': 'one',
  'deep/index.md': 'two',
  'emoji 😀/日本語.md': '---\ntitle: 日本語 😀\nauthor: Zoë\ntags: 猫, 犬\n---\n👩‍👩‍👧 \u0085\u2028 text\n',
  'yes.md': '---\ntitle: yes\n---\ntext\n',
  'number.md': '---\ntitle: 1.0\ntags: [1.0, no, 2020-01-01]\n---\ntext\n',
  'hash.md': '---\ntitle: "# x"\n---\n# x\n---\n\n---\n',
  'multi-line.md': '---\ntitle: |\n  two\n  ---\n  lines\nslug: two-lines\n---\ntext\n',
  'jekyll.md':
    '---\ntitle: Dated\ndate: 2019-03-04 10:00:00 +0100\ndraft: true\nversion: 1.2-beta\n---\ntext\n',
  'same-title-1.md': '---\ntitle: Nested\n---\nanother\n',
  'same-title-2.md': '---\ntitle: Nested\n---\nand another\n',
  'Case.md': 'upper',
  'trailing spaces.md': '---   \ntitle: Spaces\n---\t\ntext   \n   ',
  "quote's & co, $HOME.md": 'text\u0001\u007f',
};

describe('a folder', () => {
  it('comes out byte for byte as it went in', async () => {
    const folder = plant(files);
    expect(await importFrom(environment, folder)).toBe(
      `${Object.keys(files).length} created, 0 changed, 0 unchanged\nFields that were not used: extra (1), layout (1), version (1)\n`,
    );
    expect(await exportTree(environment)).toEqual(readTree(folder));
  });

  it('changes nothing when it is imported again, also after it came out with every field', async () => {
    const folder = plant(files);
    await importFrom(environment, folder);
    const before = await exportJson(environment);
    const all = Object.keys(files).length;
    expect(await importFrom(environment, folder)).toContain(`0 created, 0 changed, ${all} unchanged\n`);
    const full = plant(await exportFull());
    expect(await importFrom(environment, full)).toBe(`0 created, 0 changed, ${all} unchanged\n`);
    expect(await exportJson(environment)).toBe(before);
    expect(await exportTree(environment)).toEqual(readTree(full));
  });

  it('keeps the fields that files give, in the words of other programs too', async () => {
    await importFrom(environment, plant(files));
    const posts = JSON.parse(await exportJson(environment));
    const bySlug = (slug: string) => posts.find((post: { slug: string }) => post.slug === slug);
    expect(bySlug('dated')).toMatchObject({
      status: 'draft',
      publishedAt: '2019-03-04T09:00:00.000Z',
      version: 1,
      content: 'text\n',
    });
    expect(bySlug('yes')).toMatchObject({ title: 'yes', author: 'blog', tags: [] });
    expect(bySlug('1-0')).toMatchObject({ title: '1.0', tags: ['1.0', 'no', '2020-01-01'] });
    expect(bySlug('two-lines')).toMatchObject({ title: 'two\n---\nlines\n' });
    expect(bySlug('plain')).toMatchObject({ title: null, content: files['plain.md'] });
    expect(bySlug('odd-order')).toMatchObject({ tags: ['z', 'a'] });
  });

  it('gives a changed file back as it is now, and a post changed elsewhere with that change alone', async () => {
    const folder = plant({ 'a/one.md': '---\n# kept\ntitle: One\n---\ntext', 'two.md': 'text' });
    await importFrom(environment, folder);
    const changed = plant({ 'a/one.md': '---\n# kept\ntitle: One\n---\nother text', 'two.md': 'text' });
    expect(await importFrom(environment, changed)).toBe('0 created, 1 changed, 1 unchanged\n');
    const [first] = JSON.parse(await exportJson(environment)).filter(
      ({ slug }: { slug: string }) => slug === 'one',
    );
    expect(first).toMatchObject({ version: 2, content: 'other text' });
    expect(await exportTree(environment)).toEqual(readTree(changed));
    await store.patch(first.id, { tags: ['new'] });
    expect(await exportTree(environment)).toEqual({
      'a/one.md': '---\n# kept\ntitle: One\ntags: ["new"]\n---\nother text',
      'two.md': 'text',
    });
  });

  it('is by the user of the npm start whose database it goes to, as what its tokens write', async () => {
    const dataDir = plant({ 'database-url': url, 'chat-credentials': 'demo:canary-of-the-secret\n' });
    const here = { DATA_DIR: dataDir };
    const folder = plant({ 'a.md': 'text', 'b.md': '---\nauthor: Zoë\n---\ntext' });
    await importFrom(here, folder);
    const authors = JSON.parse(await exportJson(here)).map(({ author }: { author: string }) => author);
    expect(authors.sort()).toEqual(['Zoë', 'demo']);
    expect(await exportTree(here)).toEqual(readTree(folder));
  });

  async function exportFull() {
    const tree = await exportTree(environment, { full: true });
    return Object.fromEntries(
      Object.entries(tree).map(([path, text]) => [path, Buffer.from(text, 'latin1')]),
    );
  }
});

describe('posts of the API', () => {
  const fields: PostFields = {
    content: 'text',
    title: null,
    author: 'Zoë',
    tags: [],
    slug: undefined,
    status: 'published',
  };
  const odd: Partial<PostFields>[] = [
    { title: 'yes' },
    { title: '1.0', tags: ['1.0', 'null', 'a, b', '"', '[]', '😀'] },
    { title: '# x', content: '\n\n---\ntitle: no head\n---\n\n' },
    { title: 'two\n---\nlines', content: '\r\n\r\n text \u2028\u0001' },
    { title: '', content: '\uFEFFtext' },
    { title: 'Draft', status: 'draft', content: '---\n---\n' },
    { slug: 'null', content: 'x'.repeat(262_144) },
    { slug: '1e3', title: '\u0085\uFEFF\r' },
    { title: 'Same' },
    { title: 'Same' },
  ];

  beforeEach(async () => {
    for (const facts of odd) await store.create({ ...fields, ...facts });
    const { posts } = await store.list({ limit: 3, drafts: true });
    for (const { id } of posts) await store.patch(id, { author: 'Émile' });
  });

  it.each([{ full: false }, { full: true }])(
    'are the same after a way through files (%j)',
    async (options) => {
      const [tree, json] = [await exportTree(environment, options), await exportJson(environment)];
      await forgetPosts(database);
      const folder = plant(
        Object.fromEntries(Object.entries(tree).map(([path, text]) => [path, Buffer.from(text, 'latin1')])),
      );
      expect(await importFrom(environment, folder)).toBe(`${odd.length} created, 0 changed, 0 unchanged\n`);
      expect(await exportTree(environment, options)).toEqual(tree);
      expect(await exportTree(environment, { full: !options.full })).toEqual(tree);
      expect(await exportJson(environment)).toBe(json);
    },
  );

  it('are the same after a way through JSON', async () => {
    const [tree, json] = [await exportTree(environment), await exportJson(environment)];
    await forgetPosts(database);
    const folder = plant({ 'posts.json': json });
    await importFrom(environment, `${folder}/posts.json`);
    expect(await exportJson(environment)).toBe(json);
    expect(await exportTree(environment)).toEqual(tree);
    expect(await importFrom(environment, `${folder}/posts.json`)).toBe(
      `0 created, 0 changed, ${odd.length} unchanged\n`,
    );
  });

  it('are in JSON what GET /blogs answers, every field of each', async () => {
    const { posts } = await store.list({ limit: 100, drafts: true });
    const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
    expect(JSON.parse(await exportJson(environment))).toEqual(posts.sort(byId));
  });
});

describe('a post with a time and a version at their limits', () => {
  it.each(['0100-01-01T00:00:00.000Z', '1969-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'])(
    'comes out as it went in, and its ETag is good for writes: %s',
    async (time) => {
      const times = { publishedAt: time, createdAt: time, updatedAt: time };
      const given = {
        id: '01890a5d-ac96-774b-bcce-b302099a8057',
        content: 'text',
        version: 999_999_999,
        ...times,
      };
      await importFrom(environment, `${plant({ 'a.json': JSON.stringify([given]) })}/a.json`);
      const [post] = JSON.parse(await exportJson(environment));
      expect(post).toMatchObject(given);
      const change = await store.patch(
        post.id,
        { title: 'Other' },
        { expected: expectedVersions(etagOf(post)) },
      );
      expect(change).toMatchObject({ kind: 'changed', post: { version: 1_000_000_000 } });
      const changed = change.kind === 'changed' ? change.post : post;
      expect(
        await store.patch(post.id, { title: 'Again' }, { expected: expectedVersions(etagOf(changed)) }),
      ).toMatchObject({
        kind: 'changed',
        post: { version: 1_000_000_001 },
      });
      expect(await store.remove(post.id, { expected: expectedVersions(etagOf(post)) })).toMatchObject({
        kind: 'stale',
      });
    },
  );

  it('is only stale for tags of what no post can have', async () => {
    await importFrom(environment, plant({ 'a.md': 'text' }));
    const [{ id }] = JSON.parse(await exportJson(environment));
    for (const tag of [
      '"2147483647-zz"',
      '"9999999999-zz"',
      '"1-zzzzzzzzzz"',
      '"1--zzzzzzzzzz"',
      '"1--1h3n9q0000"',
    ])
      expect(await store.remove(id, { expected: expectedVersions(tag) })).toMatchObject({ kind: 'stale' });
  });
});

describe('no posts', () => {
  it('are an empty folder and an empty array', async () => {
    expect(await exportTree(environment)).toEqual({});
    expect(await exportJson(environment)).toBe('[]\n');
    expect(await importFrom(environment, plant({}))).toBe('0 created, 0 changed, 0 unchanged\n');
    expect(await importFrom(environment, `${plant({ 'a.json': '[]' })}/a.json`)).toContain('0 created');
  });
});
