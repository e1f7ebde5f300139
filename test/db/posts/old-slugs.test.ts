import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import type { PostFields } from '../../../db/posts/post-creation.js';
import type { Post } from '../../../shared/contracts/contract.js';
import { fields, openPostStores } from '../post-stores.js';

const stores = await openPostStores();
afterAll(() => stores.stop());
const { store } = stores;

/** A different one in each test. */
let slug: string;
let count = 0;
beforeEach(() => {
  count += 1;
  slug = `slug-${count}`;
});

const make = async (some: Partial<PostFields> = {}) => (await store.create(fields({ slug, ...some }))).post;
const rename = (post: Post, to: string) => store.patch(post.id, { slug: to });
/** The id of the post that a slug leads readers to, with `→` when it is another slug's by now. */
const follow = async (from: string, drafts = false) => {
  const found = await store.getBySlug(from, { drafts });
  return found && `${found.slug === from ? '' : '→'}${found.id}`;
};

describe('getBySlug', () => {
  it('finds a post by its slug, and by every one that it had', async () => {
    const post = await make();
    await rename(post, `${slug}-b`);
    await store.replace(post.id, fields({ slug: `${slug}-c` }));
    expect(await follow(`${slug}-c`)).toBe(post.id);
    expect(await follow(slug)).toBe(`→${post.id}`);
    expect(await follow(`${slug}-b`)).toBe(`→${post.id}`);
    expect(await follow(`${slug}-d`)).toBeUndefined();
    await store.remove(post.id);
    expect(await follow(slug)).toBeUndefined();
  });

  it('finds a post that got its slug back', async () => {
    const post = await make();
    await rename(post, `${slug}-b`);
    await rename(post, slug);
    expect(await follow(slug)).toBe(post.id);
    expect(await follow(`${slug}-b`)).toBe(`→${post.id}`);
  });

  it('finds a new post that has taken an old slug, and nothing once that is gone', async () => {
    const post = await make();
    await rename(post, `${slug}-b`);
    const next = await make();
    expect(next.slug).toBe(slug);
    expect(await follow(slug)).toBe(next.id);
    await store.remove(next.id);
    expect(await follow(slug)).toBeUndefined();
  });

  it('finds the one that took it by a change, and by its title', async () => {
    await rename(await make(), `${slug}-b`);
    const other = await make({ slug: undefined, title: `Another ${slug}` });
    await rename(other, slug);
    expect(await follow(slug)).toBe(other.id);
    await rename(other, `${slug}-c`);
    const titled = await make({ slug: undefined, title: slug });
    expect(titled.slug).toBe(slug);
    expect(await follow(slug)).toBe(titled.id);
  });

  it('lets a draft end a redirect only when it is published', async () => {
    const post = await make();
    await rename(post, `${slug}-b`);
    const draft = await make({ status: 'draft' });
    expect(await follow(slug)).toBe(`→${post.id}`);
    expect(await follow(slug, true)).toBe(draft.id);
    await store.patch(draft.id, { status: 'published' });
    expect(await follow(slug)).toBe(draft.id);
    await store.remove(draft.id);
    expect(await follow(slug)).toBeUndefined();
  });

  it('does not tell of drafts, nor of slugs that only drafts had', async () => {
    const draft = await make({ status: 'draft' });
    expect(await follow(slug)).toBeUndefined();
    await rename(draft, `${slug}-b`);
    expect(await follow(slug, true)).toBeUndefined();
    await store.patch(draft.id, { status: 'published' });
    await rename(draft, `${slug}-c`);
    await store.patch(draft.id, { status: 'draft' });
    expect(await follow(`${slug}-b`)).toBeUndefined();
    expect(await follow(`${slug}-b`, true)).toBe(`→${draft.id}`);
  });

  it('leads to one of many that take and leave a slug at once', async () => {
    const many = await Promise.all(Array.from({ length: 8 }, (_, n) => make({ slug: `${slug}-${n}` })));
    await Promise.allSettled(
      many.map(async (post) => {
        await rename(post, slug);
        await rename(post, `${post.slug}-again`);
      }),
    );
    const found = await store.getBySlug(slug, { drafts: false });
    const holder = (await Promise.all(many.map(({ id }) => store.get(id, { drafts: true })))).find(
      (post) => post?.slug === slug,
    );
    if (holder) expect(found?.id).toBe(holder.id);
    else expect(many.map(({ id }) => id)).toContain(found?.id);
  });
});
