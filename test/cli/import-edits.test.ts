import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { exportPosts, importPosts } from '../../cli/commands/posts.js';
import type { PostChanges } from '../../db/posts/post-changes.js';
import { makeFolder, plant, readTree } from '../support/folders.js';
import { collectOutput } from './output.js';
import { openPosts } from './post-commands.js';

const { environment, store, create, idOf, importFrom, refusalOf, exportJson } = await openPosts();

const files = { 'a.md': '---\ntitle: A\n---\nold', 'b.md': '---\ntitle: B\n---\nold' };

async function edit(slug: string, changes: PostChanges): Promise<string> {
  const id = await idOf(slug);
  await store.patch(id, changes);
  return id;
}

async function postOf(slug: string) {
  const post = await store.get(await idOf(slug), { drafts: true });
  return { content: post?.content, status: post?.status };
}

const refusal = (...posts: [name: string, id: string][]) =>
  [
    'Nothing was imported:',
    ...posts.map(
      ([name, id]) =>
        `  ${name}: the post ${id} was changed since this file was read; posts export shows how, --force writes over it`,
    ),
  ].join('\n');

describe('an import of a folder that has not changed', () => {
  it('a post was changed since -> nothing is taken back, unless --force says so', async () => {
    const folder = plant(files);
    await importFrom(folder);
    const id = await edit('a', { content: 'new', status: 'draft' });
    const before = await exportJson();
    writeFileSync(join(folder, 'b.md'), 'also new');
    expect(await refusalOf(folder)).toBe(refusal(['a.md', id]));
    expect(await exportJson()).toBe(before);
    const output = collectOutput();
    await importPosts(environment, folder, { force: true });
    expect(output.stderr).toBe('0 created, 2 changed, 0 unchanged\n');
    expect(await postOf('a')).toEqual({ content: 'old', status: 'published' });
  });

  it('a post was changed to what its file says -> it is left alone', async () => {
    const folder = plant(files);
    await importFrom(folder);
    for (const content of ['new', 'old']) await edit('a', { content });
    expect(await importFrom(folder)).toBe('0 created, 0 changed, 2 unchanged\n');
    writeFileSync(join(folder, 'a.md'), '---\ntitle: A\n---\nnewer');
    expect(await importFrom(folder)).toBe('0 created, 1 changed, 1 unchanged\n');
  });
});

describe('a file that was exported', () => {
  const exportTo = async (folder: string, options: { force?: boolean; full?: boolean } = {}) => {
    collectOutput();
    await exportPosts(environment, folder, options);
  };

  it('is in another folder -> makes that alone current', async () => {
    const folder = plant(files);
    await importFrom(folder);
    const id = await edit('a', { content: 'new' });
    const other = makeFolder();
    await exportTo(other);
    expect(await refusalOf(folder)).toBe(refusal(['a.md', id]));
    expect(await importFrom(other)).toBe('0 created, 0 changed, 2 unchanged\n');
  });

  it.each([{ full: true }, { json: true }])(
    'has every field (%j) -> says which version it is of',
    async ({ full = false, json = false }) => {
      await importFrom(plant(files));
      await edit('a', { content: 'new' });
      const path = json ? join(makeFolder(), 'posts.json') : makeFolder();
      await exportTo(path, { full });
      const file = json ? path : join(path, 'a.md');
      const text = json ? await exportJson() : (readTree(path)['a.md'] ?? '');
      writeFileSync(file, text.replace('new', 'newer'));
      expect(await importFrom(path)).toBe('0 created, 1 changed, 1 unchanged\n');
      writeFileSync(file, text.replace('new', 'newest'));
      if (full) expect(await importFrom(path)).toBe('0 created, 1 changed, 1 unchanged\n');
      const id = await edit('a', { content: 'other' });
      const name = json ? `${path}: post 1` : 'a.md';
      expect(await refusalOf(path)).toBe(refusal([name, id]));
    },
  );

  it('is of a post that came from no file -> takes back nothing of it', async () => {
    await create({ title: 'A', content: 'one' });
    const folder = makeFolder();
    await exportTo(folder);
    const id = await edit('a', { content: 'two' });
    expect(await refusalOf(folder)).toBe(refusal(['a.md', id]));
    expect(await postOf('a')).toMatchObject({ content: 'two' });
  });
});
