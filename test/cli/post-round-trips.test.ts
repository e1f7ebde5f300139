import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { PostFields } from '../../db/posts/post-creation.js';
import { plant, plantTree } from '../support/folders.js';
import { importFrom as importPosts, openPosts } from './post-commands.js';

const { environment, store, create, forget, importFrom, exportTree, all } = await openPosts();

/** As people, editors and other programs write them. */
const files = {
  'plain.md': 'No front matter at all, and no final newline',
  'comments.md': '---\n# a comment\ntags: [z, a]   # another\n\ntitle:   "Odd   order"\n---\ntext\n',
  'crlf.md': '---\r\ntitle: Windows\r\n---\r\n\r\nline\r\nline\r\n',
  'bom.md': '\uFEFF---\ntitle: Mark\n---\ntext\n',
  'mixed.md': '---\r\ntitle: Mixed\n---  \n\r\n\n\n  indented\r\n\t\n\n',
  'deep/er/nested.markdown': '---\ntitle: Nested\n---\ntext\n',
  'deep/er/index.md': 'one',
  'emoji 😀/日本語.md': '---\ntitle: 日本語 😀\nauthor: Zoë\ntags: 猫, 犬\n---\n👩‍👩‍👧 \u0085\u2028 text\n',
  'number.md': '---\ntitle: 1.0\ntags: [1.0, no, 2020-01-01]\n---\ntext\n',
  'hash.md': '---\ntitle: "# x"\n---\n# x\n---\n\n---\n',
  'multi-line.md': '---\ntitle: >\n  two\n  ---\n\nslug: two-lines\n---\ntext\n',
  'jekyll.md': '---\ntitle: Dated\ndate: 2019-03-04 10:00:00 +0100\ndraft: true\n---\ntext\n',
  'Case.md': 'upper',
  'A day: noon\\night.md': 'odd name',
};

describe('a folder', () => {
  it('goes in -> comes out as its posts, at its paths, and nothing changes when that goes in again', async () => {
    const count = Object.keys(files).length;
    await importFrom(plant(files));
    const posts = await all();
    expect(posts).toHaveLength(count);
    const bySlug = (slug: string) => posts.find((post) => post.slug === slug);
    const publishedAt = '2019-03-04T09:00:00.000Z';
    expect(bySlug('dated')).toMatchObject({ status: 'draft', publishedAt, version: 1, content: 'text\n' });
    expect(bySlug('1-0')).toMatchObject({ title: '1.0', tags: ['1.0', 'no', '2020-01-01'] });
    expect(bySlug('two-lines')).toMatchObject({ title: 'two ---' });
    expect(bySlug('plain')).toMatchObject({ title: null, author: 'blog', content: files['plain.md'] });
    expect(bySlug('mixed')).toMatchObject({ content: '\n\n  indented\r\n\t\n\n' });

    const tree = await exportTree();
    expect(Object.keys(tree).toSorted()).toEqual(Object.keys(files).toSorted());
    expect(await importFrom(plantTree(tree))).toBe(`0 created, 0 changed, ${count} unchanged\n`);
    expect(await exportTree()).toEqual(tree);
    await forget();
    expect(await importFrom(plantTree(tree))).toBe(`${count} created, 0 changed, 0 unchanged\n`);
    expect(await all()).toEqual(posts);
    expect(await exportTree()).toEqual(tree);
  });

  it('goes to the database of npm start -> is by its user, as what the tokens of that write', async () => {
    const { DATABASE_URL } = environment;
    const DATA_DIR = plant({
      'database-url': DATABASE_URL,
      'chat-credentials': 'demo:canary-of-the-secret\n',
    });
    await importPosts({ DATA_DIR }, plant({ 'a.md': 'text', 'b.md': '---\nauthor: Zoë\n---\ntext' }));
    expect((await all()).map(({ author }) => author).sort()).toEqual(['Zoë', 'demo']);
  });
});

describe('posts of the API', () => {
  const odd: Partial<PostFields>[] = [
    { title: 'yes' },
    { title: '1.0', tags: ['1.0', 'null', 'a, b', '"', '[]', '😀'] },
    { title: '# x', content: '\n\n---\ntitle: no head\n---\n\n' },
    { title: '--- two: "lines"', content: '\r\n\r\n text \u2028\u0001' },
    { content: '\uFEFFtext' },
    { title: 'Draft', status: 'draft', content: '---\n---\n' },
    { slug: 'null', content: 'x'.repeat(262_144) },
    { slug: '1e3', title: '~', tags: ['👩‍👧'] },
    { title: 'Same' },
    { title: 'Same' },
  ];

  beforeEach(async () => {
    for (const facts of odd) await create({ author: 'Zoë', ...facts });
    const { posts } = await store.list({ limit: 3, drafts: true });
    for (const { id } of posts) await store.patch(id, { author: 'Émile' });
  });

  it('are in the JSON of 0.7 -> come back from the files that the documentation makes of it', async () => {
    const posts = await all();
    const folder = plant({ 'posts.json': JSON.stringify(posts) });
    const [, script = ''] = /node -e '\n([^']+)'\n/.exec(readFileSync('docs/blog.md', 'utf8')) ?? [];
    execFileSync(process.execPath, ['-e', script], { cwd: folder });
    await forget();
    expect(await importFrom(join(folder, 'posts'))).toBe(`${odd.length} created, 0 changed, 0 unchanged\n`);
    expect(await all()).toEqual(posts);
  });

  it('go through files -> are the same', async () => {
    const [tree, posts] = [await exportTree(), await all()];
    expect(await importFrom(plantTree(tree))).toBe(`0 created, 0 changed, ${odd.length} unchanged\n`);
    await forget();
    expect(await importFrom(plantTree(tree))).toBe(`${odd.length} created, 0 changed, 0 unchanged\n`);
    expect(await exportTree()).toEqual(tree);
    expect(await all()).toEqual(posts);
  });
});

describe('posts with times and versions at their limits', () => {
  it('-> come out as they went in', async () => {
    const times = ['0100-01-01T00:00:00.000Z', '1969-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'];
    const given = times.map((time, n) => ({
      ...{ id: `01890a5d-ac96-774b-bcce-b302099a805${n}`, slug: `at-${n}`, status: 'published' },
      ...{ publishedAt: time, createdAt: time, updatedAt: time, version: 999_999_999 },
    }));
    const textOf = (post: object) => Object.entries(post).map(([name, value]) => `${name}: ${value}\n`);
    const text = (post: object) => `---\n${textOf(post).join('')}---\ntext`;
    await importFrom(plant(Object.fromEntries(given.map((post) => [`${post.slug}.md`, text(post)]))));
    expect(await all()).toMatchObject(given);
  });
});
