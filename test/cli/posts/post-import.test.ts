import { describe, expect, it, onTestFinished } from 'vitest';
import { type NamedPost, storePosts } from '../../../cli/posts/post-import.js';
import { openDatabase } from '../../../db/database/client.js';
import { sql } from '../../../db/database/drizzle.js';
import { PostTransfer } from '../../../db/posts/post-transfer.js';
import { plant } from '../../support/folders.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { openWireTo } from '../../support/wire.js';
import { openPosts } from '../post-commands.js';

const { database, environment, refusalOf, importFrom, all, contents } = await openPosts({ poolSize: 8 });

/** Lets every new post whose slug is like this one meet what the SQL does. */
async function haunt(slug: string, statement: string): Promise<() => Promise<void>> {
  const run = (text: string) => database.run((db) => db.execute(sql.raw(text)));
  await run(`create function haunt() returns trigger language plpgsql as
    $$ begin if new.slug like '${slug}' then ${statement}; end if; return new; end $$`);
  await run('create trigger haunt before insert on posts for each row execute function haunt()');
  const end = async () => void (await run('drop function if exists haunt cascade'));
  onTestFinished(end);
  return end;
}

const files = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`post-${n}.md`, 'text']));

describe('a post that the database does not take', () => {
  it.each([
    ["raise exception 'canary' using errcode = '57014'", 'the database does not take it (57014)'],
    [
      'perform pg_terminate_backend(pg_backend_pid())',
      'the database did not answer; it may be stored or not',
    ],
  ])('because of %s -> is named, and a repeated import does the rest', async (trouble, reason) => {
    const end = await haunt('post-3', trouble);
    const folder = plant(files);
    const said = await refusalOf(folder);
    const stored = await all();
    expect(said).toBe(
      `Not everything was imported: ${stored.length} created, 0 changed, 0 unchanged; ` +
        `what is stored stays when you import again.\n  post-3.md: ${reason}`,
    );
    await end();
    expect(await importFrom(folder)).toBe(
      `${30 - stored.length} created, 0 changed, ${stored.length} unchanged\n`,
    );
    expect(Object.keys(await contents())).toHaveLength(30);
  });
});

describe('a database that goes away', () => {
  it('in the middle of an import -> begins no further post', async () => {
    const wire = await openWireTo(environment.DATABASE_URL);
    onTestFinished(wire.close);
    const from = openDatabase({ url: wire.url, poolSize: 8, log: createRecordingLog().log });
    onTestFinished(() => from.close());
    let begun = 0;
    class Cutting extends PostTransfer {
      override store(...post: Parameters<PostTransfer['store']>) {
        if (++begun === 20) void wire.cut();
        return super.store(...post);
      }
    }
    const posts = Array.from({ length: 200 }, (_, n): NamedPost => {
      const source = { folder: 'blog', path: `${n}.md`, head: '' };
      const nothing = { id: undefined, author: undefined, version: undefined, publishedAt: undefined };
      const texts = { title: null, content: 'text', tags: [], slug: `post-${n}`, status: 'draft' as const };
      const times = { createdAt: undefined, updatedAt: undefined };
      return { name: `${n}.md`, post: { ...nothing, ...texts, ...times, source, defaultAuthor: 'blog' } };
    });
    const { counts, problems } = await storePosts(new Cutting(from), posts, false);
    expect(problems.length).toBeGreaterThan(0);
    expect(problems.join()).toContain('the database did not answer; it may be stored or not');
    expect(begun).toBeLessThanOrEqual(40);
    expect(counts.created + problems.length).toBe(begun);
  });
});
