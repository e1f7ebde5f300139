import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { exportPosts } from '../../cli/commands/posts.js';
import { sql } from '../../db/database/drizzle.js';
import { makeFolder, plant, readTree } from '../support/folders.js';
import { collectOutput } from './output.js';
import { openPosts } from './post-commands.js';

const { database, environment, store, create, contents, idOf, importFrom, refusalOf } = await openPosts();

const titled = (text: string, title = 'Same title') => `---\ntitle: ${title}\n---\n${text}`;
const foreign = (name: string, id: string, maker: string) =>
  `Nothing was imported:\n  ${name}: the post ${id} has this id or slug and came from ${maker}; ` +
  'another slug makes another post, --force writes over that one';
const stale = (name: string, id: string) =>
  `Nothing was imported:\n  ${name}: the post ${id} was changed since this file was read; ` +
  'posts export shows how, --force writes over it';

describe('a post that another file made', () => {
  it.each([
    ['the same title', 'one/a.md', titled('old'), 'two/b.md', titled('new')],
    ['the same title and path', 'one/a.md', titled('old'), 'two/a.md', titled('new')],
    ['the same name alone', 'one/about.md', 'old', 'two/about.md', 'new'],
    ['the slug that it names', 'one/a.md', titled('old'), 'two/a.md', '---\nslug: same-title\n---\nnew'],
    ['its name in a deeper folder', 'one/same-title.md', 'old', 'one/deep/same-title.md', 'new'],
  ])('is not changed by a file with %s -> that is refused by name, unless it is forced', async (...given) => {
    const [, path, old, otherPath, text] = given;
    const folder = plant({ [path]: old });
    await importFrom(join(folder, 'one'));
    const before = await contents();
    const [slug = ''] = Object.keys(before);
    const other = plant({ [otherPath]: text, 'two/new.md': 'text', 'one/new.md': 'text' });
    const from = join(other, otherPath.slice(0, 3));
    const refusal = foreign(otherPath.slice(4), await idOf(slug), path);
    expect(await refusalOf(from)).toBe(refusal);
    expect(await contents()).toEqual(before);
    expect(await importFrom(from, { force: true })).toContain('1 created, 1 changed, 0 unchanged\n');
    expect(await contents()).toMatchObject({ [slug]: 'new' });
    // Now that file is the one that made it.
    writeFileSync(join(other, otherPath), text.replace('new', 'newer'));
    expect(await importFrom(from)).toContain('1 changed');
  });

  it('index.md of two folders -> are two posts', async () => {
    const folder = plant({ 'trip/index.md': 'trip', 'home/index.md': 'home' });
    for (const name of ['trip', 'home']) await importFrom(join(folder, name));
    expect(await contents()).toEqual({ trip: 'trip', home: 'home' });
  });

  it('belongs to a file that says the same, so a file can move', async () => {
    const folder = plant({ 'one/a.md': titled('text') });
    await importFrom(join(folder, 'one'));
    renameSync(join(folder, 'one/a.md'), join(folder, 'one/b.md'));
    expect(await importFrom(join(folder, 'one'))).toContain('0 created, 0 changed, 1 unchanged\n');
    writeFileSync(join(folder, 'one/b.md'), titled('new'));
    expect(await importFrom(join(folder, 'one'))).toContain('0 created, 1 changed, 0 unchanged\n');
  });

  it('was imported before folders were kept -> is changed by the same path in any folder, and then by that alone', async () => {
    const folder = plant({ 'one/a.md': titled('old') });
    await importFrom(join(folder, 'one'));
    await database.run((db) => db.execute(sql`update post_sources set folder = null`));
    const other = plant({ 'two/a.md': titled('new'), 'two/b.md': 'text' });
    expect(await importFrom(join(other, 'two'))).toContain('1 created, 1 changed');
    expect(await refusalOf(join(folder, 'one'))).toBe(foreign('a.md', await idOf('same-title'), 'two/a.md'));
  });
});

describe('a post that came from no file', () => {
  it.each([
    ['a title', { 'other.md': titled('text', 'Hello, world!') }],
    ['the name of a file', { 'hello-world.md': 'text' }],
    ['a slug', { 'a.md': '---\nslug: hello-world\n---\ntext' }],
  ])('is not written over because of %s', async (_, files) => {
    const { post } = await create({ content: 'of the API', title: 'Hello, World' });
    const [name = ''] = Object.keys(files);
    expect(await refusalOf(plant({ ...files, 'new.md': 'text' }))).toBe(foreign(name, post.id, 'no file'));
    expect(await contents()).toEqual({ 'hello-world': 'of the API' });
  });

  it('is not written over by a file with its id alone, but by one with its version', async () => {
    const { post } = await create({ content: 'of the API', title: 'Hello' });
    const file = (...more: string[]) =>
      plant({ 'a.md': ['---', `id: ${post.id}`, 'title: Hello', ...more, '---', 'text'].join('\n') });
    expect(await refusalOf(file())).toBe(foreign('a.md', post.id, 'no file'));
    expect(await refusalOf(file('version: 2'))).toBe(stale('a.md', post.id));
    expect(await importFrom(file('version: 1'))).toBe('0 created, 1 changed, 0 unchanged\n');
    expect(await contents()).toEqual({ hello: 'text' });
  });
});

describe('a file whose slug is another one than before', () => {
  it.each([
    ['by its title', titled('text', 'Old'), titled('new', 'New')],
    ['by a field', '---\nslug: old\n---\ntext', '---\nslug: new\n---\ntext'],
  ])('%s -> makes no second post silently', async (_, before, after) => {
    const folder = plant({ 'a.md': before });
    await importFrom(folder);
    const id = await idOf('old');
    writeFileSync(join(folder, 'a.md'), after);
    expect(await refusalOf(folder)).toBe(
      `Nothing was imported:\n  a.md: made the post ${id} with the slug old, and has another slug now; ` +
        `id: ${id} keeps that post, --force makes a second one`,
    );
    writeFileSync(join(folder, 'a.md'), after.replace('---\n', `---\nid: ${id}\n`));
    expect(await importFrom(folder)).toBe('0 created, 1 changed, 0 unchanged\n');
    expect(await idOf('new')).toBe(id);
    expect(await importFrom(plant({ 'b.md': titled('b', 'B') }), { force: true })).toContain('1 created');
  });
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

  it('to what its file says -> is left alone, and follows its file again', async () => {
    const folder = plant(files);
    await importFrom(folder);
    for (const content of ['new', 'old']) await store.patch(await idOf('a'), { content });
    expect(await importFrom(folder)).toBe('0 created, 0 changed, 2 unchanged\n');
    writeFileSync(join(folder, 'a.md'), titled('newer', 'A'));
    expect(await importFrom(folder)).toBe('0 created, 1 changed, 1 unchanged\n');
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
