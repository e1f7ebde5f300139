import { existsSync, linkSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { exportPosts } from '../../../cli/commands/posts.js';
import { postSources } from '../../../db/schema.js';
import { makeFolder, plant, plantTree, readTree } from '../../support/folders.js';
import { collectOutput, complaintOf } from '../output.js';
import { openPosts } from '../post-commands.js';

const { database, environment, store, create, idOf, importFrom, exportTree, all } = await openPosts();
const run = async (path: string, options = {}): Promise<string> => {
  const output = collectOutput();
  await exportPosts(environment, path, options);
  return output.stderr;
};
const pathIs = (path: string) => database.run((db) => db.update(postSources).set({ path }));

describe('an export', () => {
  it('to a folder that is not empty -> refused, unless it is forced, and then says what it replaced', async () => {
    await importFrom(plant({ 'a.md': 'new' }));
    const folder = plant({ 'a.md': '---\nlayout: x\n---\nold', 'b.md': 'other', 'c.txt': 'x' });
    const before = readTree(folder);
    expect(await complaintOf(run(folder))).toBe(`${folder} is not empty; --force writes into it anyway.`);
    expect(readTree(folder)).toEqual(before);
    const replaced = 'Overwritten files that had other content: 1\n  a.md\n';
    expect(await run(folder, { force: true })).toContain(`1 post exported to ${folder}.\n${replaced}`);
    const { 'a.md': text = '', ...others } = readTree(folder);
    expect([text, others]).toEqual([expect.stringMatching(/\nnew$/), { 'b.md': 'other', 'c.txt': 'x' }]);
    expect(await run(folder, { force: true })).not.toContain(replaced);
    // An edit of an exported file that was not imported yet.
    writeFileSync(join(folder, 'a.md'), `${text} and edited`);
    expect(await run(folder, { force: true })).toContain(replaced);
  });

  it('to a file, or where it cannot write -> says so', async () => {
    await importFrom(plant({ 'a.md': 'text' }));
    const folder = plant({ file: '' });
    expect(await complaintOf(run(join(folder, 'file')))).toBe(`${folder}/file cannot be written (EEXIST).`);
    expect(await complaintOf(run(join(folder, 'posts.json')))).toBe(
      'Posts are exported to a folder; GET /blogs gives JSON.',
    );
    mkdirSync(join(folder, 'folder/a.md'), { recursive: true });
    expect(await complaintOf(run(join(folder, 'folder'), { force: true }))).toBe(
      `${folder}/folder/a.md cannot be written (EISDIR).`,
    );
  });

  it('of a post that has changed -> writes it to the path of its file', async () => {
    const folder = plant({ '2024/trip.md': '---\ntitle: Trip\n---\nold', 'other.md': 'text' });
    await importFrom(folder);
    await store.patch(await idOf('trip'), { content: 'new' });
    await run(folder, { force: true });
    const tree = readTree(folder);
    expect(Object.keys(tree)).toEqual(['2024/trip.md', 'other.md']);
    expect(tree['2024/trip.md']).toMatch(/\nversion: 2\n---\n\nnew$/);
    expect(await importFrom(folder)).toBe('0 created, 0 changed, 2 unchanged\n');
  });

  it('of posts of two folders with one path -> gives it to the one of this folder', async () => {
    for (const name of ['one', 'two'])
      await importFrom(join(plant({ [`${name}/a.md`]: `---\ntitle: ${name}\n---\ntext` }), name));
    const folder = join(makeFolder(), 'two');
    await run(folder);
    expect(Object.keys(readTree(folder))).toEqual(['a.md', 'one.md']);
    expect(readTree(folder)['a.md']).toContain('title: "two"');
  });

  it.each([
    ...['/etc/a.md', '../a.md', 'a/../../b.md', './a.md', 'a//b.md', '.md/..', 'a.txt'],
    ...['_index.md', 'deep/_INDEX.de.md', '.hidden.md', '.git/a.md', 'folder.md/a.md'],
  ])('of a post whose path is %j in the database -> stays where an import finds it', async (path) => {
    await importFrom(plant({ 'a.md': 'text' }));
    await pathIs(path);
    expect(Object.keys(await exportTree())).toEqual(['a.md']);
  });

  it.each([
    ['A.md', 'a.md'],
    ['a/x.md', 'A/X.md'],
    ['\u00c4.md', 'A\u0308.md'],
    ['stra\u00dfe.md', 'STRASSE.md'],
    ['\u03a3.md', '\u03c2.md'],
  ])('of %j and %j, which some file systems take for one -> keeps both apart', async (one, other) => {
    const text = (title: string) => `---\ntitle: ${title}\n---\n${title}`;
    await importFrom(plant({ [one]: text('one'), [other]: text('other') }));
    const tree = await exportTree();
    expect(new Set(Object.keys(tree).map((path) => path.normalize('NFC').toUpperCase())).size).toBe(2);
    expect(await importFrom(plantTree(tree))).toBe('0 created, 0 changed, 2 unchanged\n');
  });

  it('of a post that came from no file -> is named by its slug, and by its id where that is taken', async () => {
    await importFrom(plant({ 'Hello.md': '---\ntitle: Other\n---\ntext' }));
    await create({ slug: 'hello' });
    await create({ slug: 'world' });
    const names = ['Hello.md', `hello-${await idOf('hello')}.md`, 'world.md'];
    expect(Object.keys(await exportTree()).toSorted()).toEqual(names.toSorted());
  });

  it('into a folder with links -> does not follow them', async () => {
    await importFrom(plant({ 'deep/er/a.md': 'text', 'b.md': 'text' }));
    const outside = plant({ 'b.md': 'kept' });
    const linkedFolder = makeFolder();
    symlinkSync(outside, join(linkedFolder, 'deep'));
    expect(await complaintOf(run(linkedFolder, { force: true }))).toContain(
      '/deep cannot be written (a link leads elsewhere).',
    );
    const linkedFile = makeFolder();
    symlinkSync(join(outside, 'b.md'), join(linkedFile, 'b.md'));
    symlinkSync(join(outside, 'b.md'), join(linkedFile, '.quillgate-export'));
    expect(await run(linkedFile, { force: true })).toContain('that had other content: 1\n  b.md\n');
    expect(readTree(linkedFile)['b.md']).toMatch(/\ntext$/);
    expect(readTree(outside)).toEqual({ 'b.md': 'kept' });
    expect(existsSync(join(outside, 'er'))).toBe(false);
  });

  it('over a file -> puts a whole one in its place, so that half a one is never there', async () => {
    await importFrom(plant({ 'deep/a.md': 'new' }));
    const folder = plant({ 'deep/a.md': 'old' });
    linkSync(join(folder, 'deep/a.md'), join(folder, 'same-file'));
    await run(folder, { force: true });
    expect(readTree(folder)).toEqual({ 'deep/a.md': expect.stringMatching(/\nnew$/), 'same-file': 'old' });
  });

  it('of more posts than fit into one statement -> has each once', async () => {
    for (let n = 0; n < 25; n += 1) await create({ slug: `post-${n}` });
    expect(new Set((await all()).map(({ slug }) => slug)).size).toBe(25);
    expect(Object.keys(await exportTree())).toHaveLength(25);
  });
});

describe('files of posts that are gone', () => {
  const files = {
    'a.md': 'a',
    'deep/gone.md': 'gone',
    '.hidden.md': 'x',
    '_index.md': 'x',
    'notes.txt': 'x',
  };

  it('-> stay there and are named, or are removed and named when that is asked for', async () => {
    const folder = plant(files);
    await importFrom(folder);
    await store.remove(await idOf('gone'));
    expect(await run(folder, { force: true })).toContain(
      'Markdown files of no post; an import would make posts of them, --prune removes them: 1\n  deep/gone.md\n',
    );
    const said = `1 post exported to ${folder}.\nMarkdown files removed that belonged to no post: 1\n  deep/gone.md\n`;
    expect(await run(folder, { force: true, prune: true })).toBe(said);
    const { 'deep/gone.md': _, ...others } = files;
    expect(Object.keys(readTree(folder))).toEqual(Object.keys(others).toSorted());
  });

  it('and no file of a post was there -> nothing is removed', async () => {
    await importFrom(plant({ 'a.md': 'a' }));
    const folder = plant({ 'b.md': 'b', 'c.md': 'c' });
    expect(await complaintOf(run(folder, { force: true, prune: true }))).toBe(
      `Nothing was removed: none of the Markdown files that were in ${folder} (2) belongs to a post.`,
    );
    expect(readTree(folder)).toMatchObject({ 'b.md': 'b', 'c.md': 'c' });
  });

  it('and one that differs in its case, or is a link -> that is not taken for another, nor followed', async () => {
    const outside = plant({ 'b.md': 'kept' });
    await importFrom(plant({ 'a.md': 'a' }));
    const folder = plant({ 'A.md': 'old', 'c.md': 'old' });
    symlinkSync(join(outside, 'b.md'), join(folder, 'b.md'));
    await run(folder, { force: true, prune: true });
    expect(Object.keys(readTree(folder))).toEqual(['A.md', 'a.md']);
    expect(existsSync(join(folder, 'b.md')), basename(folder)).toBe(false);
    expect(readTree(outside)).toEqual({ 'b.md': 'kept' });
  });
});
