import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  becomePost,
  editorOf,
  leaveEditor,
  PostEditor,
  unsavedPosts,
} from '../../../console/posts/post-editor.ts';
import { fieldsOf, toPostPatch } from '../../../console/posts/post-fields.ts';
import type { Post } from '../../../shared/contracts/contract.ts';

/** The server's posts, and its requests. */
let stored: Post | undefined;
let asked: { method: string; path: string; key: string | null; body: unknown }[];
/** How many answers get lost on their way back. */
let lost: number;
let editor: PostEditor;

const first: Post = {
  ...{ id: 'one', title: 'Title', content: 'text', author: 'ann', tags: [], slug: 'title' },
  ...{ status: 'draft', publishedAt: null, createdAt: '', updatedAt: '', version: 1 },
};
const problem = (status: number, code: string) => Response.json({ code, detail: code }, { status });

function answer(method: string, ifMatch: string | null, body: object): Response {
  if (method === 'POST') stored = { ...first, ...body };
  else if (stored === undefined) return problem(404, 'not_found');
  else if (ifMatch !== null && ifMatch !== `"${stored.version}"`) return problem(412, 'precondition_failed');
  else if (method === 'PATCH') stored = { ...stored, ...body, version: stored.version + 1 };
  if (method === 'DELETE') {
    stored = undefined;
    return new Response(null, { status: 204 });
  }
  return Response.json(stored, { headers: { ETag: `"${stored?.version}"` } });
}

beforeEach(async () => {
  [stored, asked, lost] = [first, [], 0];
  vi.stubGlobal('fetch', async (path: string, { method = 'GET', headers, body }: RequestInit) => {
    const given = new Headers(headers);
    const sent = body === undefined ? {} : JSON.parse(String(body));
    asked.push({ method, path, key: given.get('Idempotency-Key'), body: sent });
    const response = answer(method, given.get('If-Match'), sent);
    if (lost-- > 0) throw new TypeError('the connection is gone');
    return response;
  });
  editor = new PostEditor();
  await editor.load('one');
});
afterEach(() => vi.unstubAllGlobals());

const somebodyElse = (change: Partial<Post>) => {
  stored = { ...first, ...change, version: 2 };
};

describe('PostEditor', () => {
  it('saves what was changed, based on what was read', async () => {
    expect(editor.isDirty.value).toBe(false);
    editor.edit({ content: 'more' });
    expect(editor.isDirty.value).toBe(true);
    expect(await editor.save('published')).toBe(true);
    expect(asked.at(-1)).toMatchObject({ method: 'PATCH', body: { content: 'more', status: 'published' } });
    expect([editor.isDirty.value, editor.done.value]).toEqual([false, 'Published: version 2.']);
    editor.edit({ content: 'even more' });
    expect(await editor.save('draft')).toBe(true);
    expect(stored).toMatchObject({ content: 'even more', version: 3 });
  });

  it('keeps what is typed while it is being saved, and takes the rest from the answer', async () => {
    editor.edit({ content: 'more' });
    const saving = editor.save('draft');
    editor.edit({ content: 'more and more' });
    expect(await saving).toBe(true);
    expect(stored).toMatchObject({ content: 'more', version: 2 });
    expect([editor.fields.value.content, editor.isDirty.value]).toEqual(['more and more', true]);
    const made = new PostEditor();
    made.edit({ title: 'New' });
    const creating = made.save('draft');
    made.edit({ content: 'typed' });
    expect(await creating).toBe(true);
    expect(made.stored.value?.post).toMatchObject({ content: '', slug: null });
    made.edit({ slug: 'new' });
    expect(await made.save('draft')).toBe(true);
    expect(stored).toMatchObject({ title: 'New', content: 'typed', slug: 'new' });
  });

  it('keeps what was typed when another was first, and then saves or discards it', async () => {
    editor.edit({ content: 'mine' });
    somebodyElse({ content: 'theirs', title: 'Theirs' });
    expect(await editor.save('published')).toBe(false);
    expect(editor.conflict.value).toMatchObject({ theirs: { post: { content: 'theirs', version: 2 } } });
    expect([editor.fields.value.content, editor.error.value]).toEqual(['mine', undefined]);
    expect(stored).toMatchObject({ content: 'theirs' });
    expect(await editor.overwrite()).toBe(true);
    expect(stored).toMatchObject({ content: 'mine', title: 'Title', status: 'published', version: 3 });
    expect(editor.conflict.value).toBeUndefined();
    editor.edit({ content: 'mine again' });
    stored = { ...first, content: 'theirs', version: 4 };
    await editor.save('draft');
    editor.discard();
    expect([editor.fields.value.content, editor.isDirty.value]).toEqual(['theirs', false]);
  });

  it('makes a new post of what was typed when the post was deleted', async () => {
    editor.edit({ content: 'mine' });
    stored = undefined;
    expect(await editor.save('draft')).toBe(false);
    expect(editor.conflict.value).toEqual({ theirs: null, wanted: 'draft' });
    expect(await editor.overwrite()).toBe(true);
    const body = { title: 'Title', content: 'mine', tags: [], slug: 'title', status: 'draft' };
    expect(asked.at(-1)).toMatchObject({ method: 'POST', body });
  });

  it('deletes only what was seen', async () => {
    somebodyElse({ content: 'theirs' });
    expect(await editor.remove()).toBe(false);
    expect(editor.conflict.value).toMatchObject({ wanted: 'deleted', theirs: { post: { version: 2 } } });
    expect(await editor.overwrite()).toBe(true);
    expect(stored).toBeUndefined();
  });

  it('creates one post, however often the answer is lost', async () => {
    const made = new PostEditor();
    made.edit({ content: 'new' });
    lost = 1;
    expect(await made.save('draft')).toBe(false);
    expect(made.error.value).toMatchObject({ code: 'unreachable' });
    expect(await made.save('draft')).toBe(true);
    const [one, two] = asked.filter(({ method }) => method === 'POST');
    expect(one?.key).toMatch(/^[0-9a-f]{32}$/);
    expect(two).toEqual(one);
    const another = new PostEditor();
    another.edit({ content: 'new' });
    await another.save('draft');
    expect(asked.at(-1)?.key).not.toBe(one?.key);
  });

  it('finds out that it has saved or deleted the post itself, when the answer was lost', async () => {
    editor.edit({ content: 'mine' });
    lost = 1;
    expect(await editor.save('published')).toBe(false);
    expect(editor.error.value).toMatchObject({ code: 'unreachable' });
    const saving = editor.save('published');
    editor.edit({ content: 'mine again' });
    expect(await saving).toBe(true);
    expect([editor.conflict.value, editor.done.value]).toEqual([undefined, 'Published: version 2.']);
    expect([editor.fields.value.content, editor.stored.value?.post.content]).toEqual(['mine again', 'mine']);
    lost = 1;
    expect(await editor.remove()).toBe(false);
    expect(await editor.remove()).toBe(true);
    expect(editor.isDirty.value).toBe(false);
  });
});

describe('toPostPatch', () => {
  it('has what was changed, and leaves what the form cannot hold', () => {
    const post = { ...first, content: ' text\n', tags: ['a,b', 'c'] };
    const fields = fieldsOf(post);
    expect(toPostPatch(fields, post, 'draft')).toEqual({});
    const edited = { content: 'x ', status: 'published' };
    expect(toPostPatch({ ...fields, content: 'x ' }, post, 'published')).toEqual(edited);
    expect(toPostPatch({ ...fields, tags: ' x, ,y,' }, post, 'draft')).toEqual({ tags: ['x', 'y'] });
    const none = { title: null, slug: null };
    expect(toPostPatch({ ...fields, title: ' ', slug: '' }, post, 'draft')).toEqual(none);
  });
});

describe('editorOf', () => {
  it('keeps what is not saved, for each user alone', () => {
    editorOf('ann', 'new').edit({ content: 'mine' });
    for (const user of ['ann', 'bob']) leaveEditor(user, 'new');
    expect(editorOf('ann', 'new').fields.value.content).toBe('mine');
    expect(editorOf('bob', 'new').fields.value.content).toBe('');
    expect([unsavedPosts('ann'), unsavedPosts('bob')]).toEqual([['new'], []]);
    const editor = editorOf('ann', 'new');
    becomePost('ann', 'one');
    expect(editorOf('ann', 'one')).toBe(editor);
    expect(editorOf('ann', 'new')).not.toBe(editor);
    editor.discard();
    leaveEditor('ann', 'one');
    expect(editorOf('ann', 'one')).not.toBe(editor);
  });
});
