import { afterAll, describe, expect, it } from 'vitest';
import { createPostMap } from '../../../db/posts/post-lists.js';
import { PostStore } from '../../../db/posts/post-store.js';
import { openTestDatabase } from '../../support/database.js';
import { fields } from '../post-stores.js';

const { database, stop } = await openTestDatabase();
afterAll(stop);
const map = createPostMap(database, { partSize: 3 });
const store = new PostStore(database);

const parts = async () =>
  Promise.all(Array.from({ length: (await map.state()).parts }, (_, index) => map.part(index + 1)));
const slugs = async () => (await parts()).map((part) => part.map(({ slug }) => slug));

describe('createPostMap', () => {
  it('has one empty part when there are no posts', async () => {
    expect(await slugs()).toEqual([[]]);
  });

  it('has every published post once, oldest first, in parts of the same size', async () => {
    for (let n = 1; n <= 3; n++) await store.create(fields({ slug: `n-${n}` }));
    expect(await slugs()).toEqual([['n-1', 'n-2', 'n-3']]);
    await store.create(fields({ slug: 'draft', status: 'draft' }));
    expect(await slugs()).toEqual([['n-1', 'n-2', 'n-3']]);
    for (let n = 4; n <= 7; n++) await store.create(fields({ slug: `n-${n}` }));
    expect(await slugs()).toEqual([['n-1', 'n-2', 'n-3'], ['n-4', 'n-5', 'n-6'], ['n-7']]);
    const [[first] = []] = await parts();
    expect(first).toEqual({ id: expect.any(String), slug: 'n-1', updatedAt: expect.any(Date) });
    expect(await map.part(4)).toEqual([]);
    expect(await map.part(999_999)).toEqual([]);
  });

  it('goes on where posts of the same moment lie on both sides of an end', async () => {
    await database.run((db) =>
      db.execute("update posts set published_at = '2026-01-01Z' where status = 'published'"),
    );
    expect((await slugs()).map((part) => part.length)).toEqual([3, 3, 1]);
    expect(new Set((await slugs()).flat()).size).toBe(7);
  });

  it('a published post is new, changed, withdrawn or gone -> another version; a draft is -> the same', async () => {
    const seen = [(await map.state()).version];
    const { post } = await store.create(fields({ slug: 'one' }));
    // As by a transaction that began before the one that changed another post.
    const earlier = "update posts set version = version + 1, updated_at = '2026-01-01Z' where slug = 'n-1'";
    for (const change of [
      async () => undefined,
      () => store.patch(post.id, { title: 'Another' }),
      () => store.patch(post.id, { status: 'draft' }),
      () => store.patch(post.id, { status: 'published' }),
      () => database.run((db) => db.execute(earlier)),
      () => store.remove(post.id),
    ]) {
      await change();
      seen.push((await map.state()).version);
    }
    const [start, , , withdrawn, ...others] = seen;
    expect(withdrawn).toBe(start);
    expect(new Set([...seen.slice(0, 3), ...others]).size).toBe(6);
    await store.create(fields({ slug: 'only-a-draft', status: 'draft' }));
    expect((await map.state()).version).toBe(seen.at(-1));
  });
});
