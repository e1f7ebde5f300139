import { describe, expect, it } from 'vitest';
import { plant } from '../../support/folders.js';
import { openPosts } from '../post-commands.js';

const { store, create, idOf, importFrom, refusalOf } = await openPosts();

/** Every post: what it holds, by its slug. */
async function contents(): Promise<Record<string, string>> {
  const { posts } = await store.list({ limit: 100, drafts: true });
  return Object.fromEntries(posts.map(({ slug, content }) => [slug, content]));
}

describe('a post that came from no file', () => {
  const refusal = (name: string, id: string) =>
    `Nothing was imported:\n  ${name}: its title or file name makes the slug of the post ${id}, which came from no file; ` +
    `to write over that post give this one its id, else another slug`;

  it.each([
    ['a title', { 'other.md': '---\ntitle: Hello, world!\n---\ntext' }],
    ['the name of a file', { 'hello-world.md': 'text' }],
  ])('is not written over because %s happens to make its slug', async (_, files) => {
    const { post } = await create({ content: 'of the API', title: 'Hello, World' });
    const [name = ''] = Object.keys(files);
    const folder = plant({ ...files, 'new.md': 'text' });
    expect(await refusalOf(folder)).toBe(refusal(name, post.id));
    expect(await contents()).toEqual({ 'hello-world': 'of the API' });
  });

  it.each(['id', 'slug'] as const)('is written over by a file that names its %s', async (field) => {
    const { post } = await create({ content: 'of the API', title: 'Hello' });
    const folder = plant({ 'a.md': `---\n${field}: ${post[field]}\ntitle: Hello\n---\ntext` });
    expect(await importFrom(folder)).toBe('0 created, 1 changed, 0 unchanged\n');
    expect(await contents()).toEqual({ hello: 'text' });
  });

  it('belongs to a file that says the same', async () => {
    await create({ content: 'of the API', title: 'Hello' });
    const file = '---\ntitle: Hello\n---\n';
    expect(await importFrom(plant({ 'a.md': `${file}of the API` }))).toContain('1 unchanged');
    expect(await importFrom(plant({ 'a.md': `${file}text` }))).toContain('1 changed');
  });
});

describe('a post that came from a file', () => {
  const titled = (text: string) => `---\ntitle: Same title\n---\n${text}`;

  it('is found again by its slug when the file has moved', async () => {
    await importFrom(plant({ 'a.md': titled('text') }));
    expect(await importFrom(plant({ 'deep/b.md': titled('new text') }))).toBe(
      '0 created, 1 changed, 0 unchanged\n',
    );
    expect(await contents()).toEqual({ 'same-title': 'new text' });
  });

  it('stays that of its file when another one with its title comes before it', async () => {
    await importFrom(plant({ 'b.md': titled('b') }));
    const id = await idOf('same-title');
    const folder = plant({ 'a.md': titled('a'), 'b.md': titled('b') });
    expect(await importFrom(folder)).toBe('1 created, 0 changed, 1 unchanged\n');
    expect(await idOf('same-title')).toBe(id);
    expect(await importFrom(folder)).toBe('0 created, 0 changed, 2 unchanged\n');
    expect(Object.values(await contents()).sort()).toEqual(['a', 'b']);
  });

  it('is found by its slug when the files are numbered anew', async () => {
    const one = '---\ntitle: One\n---\n1';
    const two = '---\ntitle: Two\n---\n2';
    await importFrom(plant({ '1.md': one, '2.md': two }));
    const renumbered = plant({ '1.md': 'first', '2.md': one, '3.md': two });
    expect(await importFrom(renumbered)).toBe('1 created, 0 changed, 2 unchanged\n');
  });

  it('keeps a slug that a file names, also when a title makes the same', async () => {
    await importFrom(plant({ 'b.md': titled('b') }));
    const folder = plant({ 'b.md': titled('b'), 'c.md': '---\nslug: same-title\n---\nc' });
    expect(await importFrom(folder)).toBe('1 created, 1 changed, 0 unchanged\n');
    expect(await contents()).toMatchObject({ 'same-title': 'c' });
  });
});
