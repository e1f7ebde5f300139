import { beforeEach, describe, expect, it } from 'vitest';
import type { PostFields } from '../../db/posts/post-creation.js';
import { plant, plantTree, readTree } from '../support/folders.js';
import { commandsOn, openPosts } from './post-commands.js';

const { environment, store, create, forget, importFrom, exportTree, exportJson } = await openPosts();

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
  it('goes in -> comes out byte for byte, with the fields that its files give', async () => {
    const folder = plant(files);
    const all = Object.keys(files).length;
    const unused = 'Fields that were not used: extra (1), layout (1), version (1)';
    expect(await importFrom(folder)).toBe(`${all} created, 0 changed, 0 unchanged\n${unused}\n`);
    expect(await exportTree()).toEqual(readTree(folder));
    const json = await exportJson();
    expect(await importFrom(folder)).toContain(`0 created, 0 changed, ${all} unchanged\n`);
    const full = plantTree(await exportTree({ full: true }));
    expect(await importFrom(full)).toBe(`0 created, 0 changed, ${all} unchanged\n`);
    expect(await exportJson()).toBe(json);
    expect(await exportTree()).toEqual(readTree(full));

    const posts = JSON.parse(json);
    const bySlug = (slug: string) => posts.find((post: { slug: string }) => post.slug === slug);
    const publishedAt = '2019-03-04T09:00:00.000Z';
    expect(bySlug('dated')).toMatchObject({ status: 'draft', publishedAt, version: 1, content: 'text\n' });
    expect(bySlug('yes')).toMatchObject({ title: 'yes', author: 'blog', tags: [] });
    expect(bySlug('1-0')).toMatchObject({ title: '1.0', tags: ['1.0', 'no', '2020-01-01'] });
    expect(bySlug('two-lines')).toMatchObject({ title: 'two\n---\nlines\n' });
    expect(bySlug('plain')).toMatchObject({ title: null, content: files['plain.md'] });
    expect(bySlug('odd-order')).toMatchObject({ tags: ['z', 'a'] });
  });

  it('goes to the database of npm start -> is by its user, as what the tokens of that write', async () => {
    const { DATABASE_URL } = environment;
    const DATA_DIR = plant({
      'database-url': DATABASE_URL,
      'chat-credentials': 'demo:canary-of-the-secret\n',
    });
    const here = commandsOn({ DATA_DIR });
    const folder = plant({ 'a.md': 'text', 'b.md': '---\nauthor: Zoë\n---\ntext' });
    await here.importFrom(folder);
    const authors = JSON.parse(await here.exportJson()).map(({ author }: { author: string }) => author);
    expect(authors.sort()).toEqual(['Zoë', 'demo']);
    expect(await here.exportTree()).toEqual(readTree(folder));
  });
});

describe('posts of the API', () => {
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
    for (const facts of odd) await create({ author: 'Zoë', ...facts });
    const { posts } = await store.list({ limit: 3, drafts: true });
    for (const { id } of posts) await store.patch(id, { author: 'Émile' });
  });

  it.each([{ full: false }, { full: true }])('go through files (%j) -> are the same', async (options) => {
    const [tree, json] = [await exportTree(options), await exportJson()];
    await forget();
    expect(await importFrom(plantTree(tree))).toBe(`${odd.length} created, 0 changed, 0 unchanged\n`);
    // However they are exported: each has the file that it came from.
    expect(await exportTree({ full: !options.full })).toEqual(tree);
    expect(await exportJson()).toBe(json);
  });

  it('go through JSON -> are what GET /blogs answers, and the same afterwards', async () => {
    const { posts } = await store.list({ limit: 100, drafts: true });
    const [tree, json] = [await exportTree(), await exportJson()];
    expect(JSON.parse(json)).toEqual(posts.sort((a, b) => (a.id < b.id ? -1 : 1)));
    await forget();
    const path = `${plant({ 'posts.json': json })}/posts.json`;
    await importFrom(path);
    expect(await exportJson()).toBe(json);
    expect(await exportTree()).toEqual(tree);
    expect(await importFrom(path)).toBe(`0 created, 0 changed, ${odd.length} unchanged\n`);
  });
});

describe('posts with times and versions at their limits', () => {
  it('-> come out as they went in', async () => {
    const times = ['0100-01-01T00:00:00.000Z', '1969-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'];
    const given = times.map((time, n) => ({
      ...{ id: `01890a5d-ac96-774b-bcce-b302099a805${n}`, content: 'text', slug: `at-${n}` },
      ...{ publishedAt: time, createdAt: time, updatedAt: time, version: 999_999_999 },
    }));
    await importFrom(`${plant({ 'a.json': JSON.stringify(given) })}/a.json`);
    expect(JSON.parse(await exportJson())).toMatchObject(given);
  });
});
