import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { exportPosts } from '../../cli/commands/posts.js';
import { sql } from '../../db/database/drizzle.js';
import { makeFolder, plant, readTree } from '../support/folders.js';
import { collectOutput } from './output.js';
import { openPosts } from './post-commands.js';

const { database, environment, store, all, create, contents, idOf, importFrom, refusalOf } =
  await openPosts();

const titled = (text: string, title = 'Same title') => `---\ntitle: ${title}\n---\n${text}`;
const foreign = (name: string, id: string, maker: string) =>
  `Nothing was imported:\n  ${name}: the post ${id} has this id or slug and came from ${maker}; ` +
  'another slug makes another post, --force writes over that one';
const stale = (name: string, id: string) =>
  `Nothing was imported:\n  ${name}: the post ${id} was changed since this file was read; ` +
  'an export to another folder shows how, --force writes over it';

describe('a post that another file made', () => {
  it.each([
    ['in another folder, with the same path', 'two/a.md'],
    ['with another path in a folder of that name', 'one/deep/a.md'],
  ])('is not changed by a file %s -> that is refused by name, unless it is forced', async (_, otherPath) => {
    await importFrom(join(plant({ 'one/a.md': titled('old') }), 'one'));
    const other = plant({ [otherPath]: titled('new'), 'two/new.md': 'text', 'one/new.md': 'text' });
    const from = join(other, otherPath.slice(0, 3));
    const id = await idOf('same-title');
    expect(await refusalOf(from)).toBe(foreign(otherPath.slice(4), id, 'one/a.md'));
    expect(await contents()).toEqual({ 'same-title': 'old' });
    expect(await importFrom(from, { force: true })).toContain('1 created, 1 changed, 0 unchanged\n');
    // Now that file is the one that made it.
    writeFileSync(join(other, otherPath), titled('newer'));
    expect(await importFrom(from)).toContain('1 changed');
  });

  it('was imported by 0.7, which kept no folder -> is changed by a file once that has said the same', async () => {
    const folder = join(plant({ 'one/a.md': titled('old') }), 'one');
    await importFrom(folder);
    await database.run((db) => db.execute(sql`update post_sources set folder = null`));
    const refusal = foreign('a.md', await idOf('same-title'), '(a folder that 0.7 did not keep)/a.md');
    for (const name of ['one', 'two'])
      expect(await refusalOf(join(plant({ [`${name}/a.md`]: titled('new') }), name))).toBe(refusal);
    expect(await importFrom(folder)).toContain('1 unchanged');
    writeFileSync(join(folder, 'a.md'), titled('new'));
    expect(await importFrom(folder)).toContain('1 changed');
  });
});

it('a post that came from no file -> is changed only by a file with its id and version', async () => {
  const { post } = await create({ content: 'of the API', title: 'Hello' });
  const files = (...fields: string[]) =>
    plant({ 'hello.md': ['---', ...fields, '---', 'text'].join('\n'), 'new.md': 'text' });
  for (const fields of [[], ['title: Hello'], ['slug: hello'], [`id: ${post.id}`, 'slug: other']])
    expect(await refusalOf(files(...fields))).toBe(foreign('hello.md', post.id, 'no file'));
  const named = [`id: ${post.id}`, 'title: Hello'];
  expect(await refusalOf(files(...named, 'version: 2'))).toBe(stale('hello.md', post.id));
  expect(await contents()).toEqual({ hello: 'of the API' });
  expect(await importFrom(files(...named, 'version: 1'))).toBe('1 created, 1 changed, 0 unchanged\n');
});

it('a file whose title, and so its slug, is another one than before -> makes no second post silently', async () => {
  const folder = plant({ 'a.md': titled('text', 'Old') });
  await importFrom(folder);
  const id = await idOf('old');
  writeFileSync(join(folder, 'a.md'), titled('new', 'New'));
  expect(await refusalOf(folder)).toBe(
    `Nothing was imported:\n  a.md: made the post ${id} with the slug old, and has another slug now; ` +
      `id: ${id} keeps that post, --force makes a second one`,
  );
  writeFileSync(join(folder, 'a.md'), titled('new', 'New').replace('---\n', `---\nid: ${id}\n`));
  expect(await importFrom(folder)).toBe('0 created, 1 changed, 0 unchanged\n');
  expect(await idOf('new')).toBe(id);
});

describe('a post that was changed after its file was imported', () => {
  const files = { 'a.md': titled('old', 'A'), 'b.md': titled('old', 'B') };

  it('-> nothing is taken back, unless it is forced', async () => {
    const folder = plant(files);
    await importFrom(folder);
    const id = await idOf('a');
    await store.patch(id, { content: 'new', status: 'draft' });
    writeFileSync(join(folder, 'b.md'), titled('also new', 'B'));
    expect(await refusalOf(folder)).toBe(stale('a.md', id));
    expect(await contents()).toEqual({ a: 'new', b: 'old' });
    expect(await importFrom(folder, { force: true })).toBe('0 created, 2 changed, 0 unchanged\n');
    expect(await contents()).toEqual({ a: 'old', b: 'also new' });
  });

  it('and was exported -> can be changed by the exported file, wherever it is, until it is changed again', async () => {
    const folder = plant(files);
    await importFrom(folder);
    const id = await idOf('a');
    await store.patch(id, { content: 'new' });
    const other = makeFolder();
    collectOutput();
    await exportPosts(environment, other, {});
    expect(await refusalOf(folder)).toBe(stale('a.md', id));
    const text = readTree(other)['a.md'] ?? '';
    for (const content of ['newer', 'newest']) {
      writeFileSync(join(other, 'a.md'), text.replace('new', content));
      expect(await importFrom(other)).toBe('0 created, 1 changed, 1 unchanged\n');
    }
    await store.patch(id, { content: 'other' });
    expect(await refusalOf(other)).toBe(stale('a.md', id));
  });
});

it('a name with decomposed letters, as macOS has had them -> is the file of that name, and its post is changed', async () => {
  const text = (words: string) => `---\ntags: [Café]\n---\n${words}`;
  await importFrom(join(plant({ 'blog/Größe.md': text('one') }), 'blog'));
  const folder = join(plant({ ['blog/Größe.md'.normalize('NFD')]: text('two').normalize('NFD') }), 'blog');
  expect(await importFrom(folder)).toBe('0 created, 1 changed, 0 unchanged\n');
  expect(await all()).toMatchObject([{ slug: 'groesse', tags: ['Café'.normalize('NFC')], content: 'two' }]);
});
