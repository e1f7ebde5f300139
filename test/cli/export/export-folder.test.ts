import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { exportPosts } from '../../../cli/commands/posts.js';
import type { PostChanges } from '../../../db/posts/post-changes.js';
import { postSources } from '../../../db/schema.js';
import { makeFolder, plant, readTree } from '../../support/folders.js';
import { collectOutput } from '../output.js';
import { complaintOf, openPosts } from '../post-commands.js';

const { database, environment, store, idOf, importFrom, exportTree, exportJson } = await openPosts();
const change = async (slug: string, changes: PostChanges) => store.patch(await idOf(slug), changes);
const remove = async (slug: string) => store.remove(await idOf(slug));

describe('exportPosts', () => {
  const run = async (path: string, options = {}): Promise<string> => {
    const output = collectOutput();
    await exportPosts(environment, path, options);
    return output.stderr;
  };

  it('a folder that is not empty, or a file that exists -> refused, unless it is forced', async () => {
    await importFrom(plant({ 'a.md': 'new' }));
    const folder = plant({ 'a.md': 'old', 'b.md': 'other', 'posts.json': 'old' });
    expect(await complaintOf(run(folder))).toBe(
      `${folder} is not empty; --force writes into it all the same.`,
    );
    const file = join(folder, 'posts.json');
    expect(await complaintOf(run(file))).toBe(`${file} exists already; --force writes over it.`);
    expect(readTree(folder)).toEqual({ 'a.md': 'old', 'b.md': 'other', 'posts.json': 'old' });
    await run(file, { force: true });
    expect(JSON.parse(readFileSync(file, 'utf8'))).toHaveLength(1);
    await run(folder, { force: true });
    expect(readTree(folder)).toMatchObject({ 'a.md': 'new', 'b.md': 'other' });
  });

  it('what cannot be written -> is named', async () => {
    await importFrom(plant({ 'a.md': 'text' }));
    const folder = plant({ file: '' });
    expect(await complaintOf(run(join(folder, 'file')))).toBe(`${folder}/file cannot be written (EEXIST).`);
    expect(await complaintOf(run(join(folder, 'no/posts.json')))).toBe(
      `${folder}/no/posts.json cannot be written (ENOENT).`,
    );
    mkdirSync(join(folder, 'taken.json/x'), { recursive: true });
    expect(await complaintOf(run(join(folder, 'taken.json'), { force: true }))).toMatch(
      /cannot be written \(E\w+\)\.$/,
    );
    expect(readdirSync(folder), 'leaves no half file').toEqual(['file', 'taken.json']);
    mkdirSync(join(folder, 'folder/a.md'), { recursive: true });
    expect(await complaintOf(run(join(folder, 'folder'), { force: true }))).toBe(
      `${folder}/folder/a.md cannot be written (EISDIR).`,
    );
  });

  // Which paths lead outside is in export-paths.test.ts.
  it('the database says a path outside of the folder -> stays within it', async () => {
    await importFrom(plant({ 'a.md': '---\n# head\n---\ntext' }));
    await database.run((db) => db.update(postSources).set({ path: '../out.md' }));
    expect(await exportTree()).toEqual({ 'a.md': '---\n# head\n---\ntext' });
  });

  it('a link in the folder -> is not followed', async () => {
    await importFrom(plant({ 'deep/a.md': 'text', 'b.md': 'text' }));
    const outside = plant({ 'b.md': 'kept' });
    const linkedFolder = makeFolder();
    symlinkSync(outside, join(linkedFolder, 'deep'));
    expect(await complaintOf(run(linkedFolder, { force: true }))).toContain(
      '/deep/a.md cannot be written (EEXIST).',
    );
    const linkedFile = makeFolder();
    symlinkSync(join(outside, 'b.md'), join(linkedFile, 'b.md'));
    expect(await complaintOf(run(linkedFile, { force: true }))).toContain('/b.md cannot be written (ELOOP).');
    expect(readTree(outside)).toEqual({ 'b.md': 'kept' });
  });

  it('a file that cannot have its name -> another, of which an import makes the same post', async () => {
    await importFrom(plant({ 'Post.md': '---\ntitle: A\n---\none', 'post.md': 'two' }));
    const tree = await exportTree();
    expect(new Set(Object.keys(tree).map((path) => path.toLowerCase())).size).toBe(2);
    const before = await exportJson();
    expect(await importFrom(plant(tree))).toBe('0 created, 0 changed, 2 unchanged\n');
    expect(await exportJson()).toBe(before);
  });

  it('a post that has changed -> keeps its path, so that a repeated import finds it', async () => {
    const folder = plant({
      '2024/trip.md': '---\n# mine\nlayout: post\ntitle: Trip\n---\nold text\n',
      'other.md': 'text',
    });
    await importFrom(folder);
    await change('trip', { content: 'new text\n' });
    await run(folder, { force: true });
    expect(readTree(folder)).toEqual({
      '2024/trip.md': '---\n# mine\nlayout: post\ntitle: Trip\n---\nnew text\n',
      'other.md': 'text',
    });
    await change('trip', { title: 'A trip' });
    await run(folder, { force: true });
    expect(readTree(folder)).toMatchObject({
      '2024/trip.md': '---\n# mine\nlayout: post\ntitle: "A trip"\nslug: "trip"\n---\nnew text\n',
    });
    expect(await importFrom(folder)).toContain('0 created, 0 changed, 2 unchanged\n');
    await run(folder, { force: true, full: true });
    expect(Object.keys(readTree(folder))).toEqual(['2024/trip.md', 'other.md']);
    expect(readTree(folder)['2024/trip.md']).toContain('\nversion: 3\n');
    expect(await importFrom(folder)).toBe('0 created, 0 changed, 2 unchanged\n');
  });

  describe('into a folder that has files of posts that are gone', () => {
    const files = { 'a.md': 'a', 'deep/gone.md': 'gone', '.hidden.md': 'x', 'notes.txt': 'x' };

    it('-> leaves them there and says so, or removes and names them when that is asked for', async () => {
      const folder = plant(files);
      await importFrom(folder);
      await remove('gone');
      expect(await run(folder, { force: true })).toBe(
        `1 post exported to ${folder}.\n` +
          'Markdown files there that belong to no post: 1. An import would make posts of them; --prune removes them.\n',
      );
      expect(readTree(folder)).toEqual(files);
      expect(await run(folder, { force: true, prune: true })).toBe(
        `1 post exported to ${folder}.\nMarkdown files removed that belonged to no post: 1\n  deep/gone.md\n`,
      );
      const { 'deep/gone.md': _, ...others } = files;
      expect(readTree(folder)).toEqual(others);
    });

    it('and of no post at all -> removes nothing', async () => {
      await importFrom(plant({ 'a.md': 'a' }));
      const folder = plant({ 'b.md': 'b', 'c.md': 'c' });
      expect(await complaintOf(run(folder, { force: true, prune: true }))).toBe(
        `Nothing was removed: none of the Markdown files that were in ${folder} (2) belongs to a post.`,
      );
      expect(readTree(folder)).toEqual({ 'a.md': 'a', 'b.md': 'b', 'c.md': 'c' });
    });

    it('and one that differs in its case -> is not taken for another', async () => {
      await importFrom(plant({ 'a.md': 'a', 'b.md': 'b' }));
      const folder = plant({ 'A.md': 'old', 'b.md': 'old', 'c.md': 'old' });
      await run(folder, { force: true, prune: true });
      expect(readTree(folder)).toMatchObject({ 'a.md': 'a', 'b.md': 'b' });
      expect(readTree(folder)).not.toHaveProperty('c.md');
    });

    it('and a link -> removes that, and not what it leads to', async () => {
      await importFrom(plant({ 'a.md': 'a' }));
      const outside = plant({ 'b.md': 'kept' });
      const folder = plant({ 'a.md': 'a' });
      symlinkSync(join(outside, 'b.md'), join(folder, 'b.md'));
      symlinkSync(outside, join(folder, 'linked'));
      await run(folder, { force: true, prune: true });
      expect(readTree(outside)).toEqual({ 'b.md': 'kept' });
      expect(existsSync(join(folder, 'b.md'))).toBe(false);
    });
  });
});
