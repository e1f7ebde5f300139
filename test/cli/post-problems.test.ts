import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { afterAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { storePosts } from '../../cli/import-run.js';
import { exportPosts } from '../../cli/posts.js';
import { openDatabase } from '../../db/client.js';
import { createPostTransfer } from '../../db/post-transfer.js';
import { createPostStore } from '../../db/posts.js';
import { postSources } from '../../db/schema.js';
import { CannotStart } from '../../shared/program.js';
import { openTestDatabase } from '../support/database.js';
import { createRecordingLog } from '../support/recording-log.js';
import { collectOutput } from './output.js';
import { exportJson, exportTree, forgetPosts, importFrom } from './post-commands.js';
import { makeFolder, plant, readTree } from './post-trees.js';

const { database, url, stop } = await openTestDatabase({ poolSize: 8 });
afterAll(stop);
beforeEach(() => forgetPosts(database));
const environment = { DATABASE_URL: url };
const store = createPostStore(database);
const transfer = createPostTransfer(database);
const id = '01890a5d-ac96-774b-bcce-b302099a8057';

/** What a command says when it gives up. */
async function complaintOf(command: Promise<unknown>): Promise<string> {
  const error = await command.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(CannotStart);
  return (error as CannotStart).message;
}

describe('importPosts', () => {
  it('names every problem with its file, quotes none, and writes nothing', async () => {
    const folder = plant({
      'good.md': 'text',
      'blank.md': '---\ntitle: canary\n---\n \n',
      'deep/yaml.md': '---\ntitle: [canary\n---\ntext',
      'fields.md': `---\nid: canary\ntitle: ${'canary'.repeat(51)}\ntags: [a, {canary: b}]\nslug: Canary\nstatus: canary\ndate: canary\ndraft: canary\n---\ntext`,
      'author.md': '---\nauthor: ""\nstatus: published\ndraft: true\n---\ntext',
      'version.md': `---\nid: ${id}\nversion: canary\ncreatedAt: 2026-02-30\n---\ntext`,
      'nul.md': '---\n# \0canary\n---\ntext',
      'bytes.md': Buffer.from([0x66, 0xff]),
      'large.md': 'canary'.repeat(700_000),
      'long.md': 'x'.repeat(262_145),
    });
    mkdirSync(join(folder, 'folder.md'));
    symlinkSync('/nowhere', join(folder, 'link.md'));
    expect((await complaintOf(importFrom(environment, folder))).split('\n').sort()).toEqual(
      [
        'Nothing was imported:',
        '  author.md: author: must not be blank',
        '  author.md: draft: contradicts status',
        '  blank.md: content: must not be blank',
        '  bytes.md: is not UTF-8',
        '  deep/yaml.md: line 3: is not valid YAML',
        '  fields.md: date: must be a time (RFC 3339) or a day (2030-12-31)',
        '  fields.md: draft: must be true or false',
        '  fields.md: id: must be a UUID',
        '  fields.md: slug: must be lowercase letters, digits and single hyphens',
        '  fields.md: status: must be published or draft',
        '  fields.md: tags.1: must be a string',
        '  fields.md: title: must be at most 300 characters',
        '  large.md: is larger than 4194304 bytes',
        '  link.md: cannot be read (ENOENT)',
        '  long.md: content: must be at most 262144 characters',
        '  nul.md: head: must not contain NUL characters',
        '  version.md: createdAt: must be a time (RFC 3339) or a day (2030-12-31)',
        '  version.md: version: must be a whole number, 1 or more',
      ].sort(),
    );
    expect(await transfer.count()).toBe(0);
  });

  it('refuses ids and slugs that are used twice', async () => {
    const folder = plant({
      'a.md': `---\nid: ${id}\nslug: one\n---\ntext`,
      'b.md': `---\nid: ${id.toUpperCase()}\nslug: two\n---\ntext`,
      'c.md': '---\nslug: two\n---\ntext',
    });
    expect(await complaintOf(importFrom(environment, folder))).toBe(
      'Nothing was imported:\n  b.md: id: is the same as that of a.md\n  c.md: slug: is the same as that of b.md',
    );
  });

  it('refuses the slug of a post that is another one', async () => {
    const fields = { content: 'text', title: null, author: 'Zoë', tags: [], status: 'published' as const };
    const { post } = await store.create({ ...fields, slug: 'taken' });
    const folder = plant({ 'a.md': `---\nid: ${id}\nslug: taken\n---\nother`, 'b.md': 'text' });
    expect(await complaintOf(importFrom(environment, folder))).toBe(
      `Nothing was imported:\n  a.md: slug: belongs to the post ${post.id}`,
    );
    expect(await transfer.count()).toBe(1);
  });

  it.each([
    ['{}', 'must be a JSON array of posts'],
    ['[', 'must be a JSON array of posts'],
    ['', 'must be a JSON array of posts'],
    ['[{"content":"a"},5]', 'post 2: content: is required'],
    ['[{"content":"\\ud800"}]', 'post 1: must be well-formed Unicode'],
    ['[{"content":"a","tags":["a\\u0000"]}]', 'post 1: tags.0: must not contain NUL characters'],
    ['[{"content":"a","__proto__":{"content":1},"id":7}]', 'post 1: id: must be a UUID'],
  ])('refuses the JSON %s', async (json, problem) => {
    const path = join(plant({ 'posts.json': json }), 'posts.json');
    expect(await complaintOf(importFrom(environment, path))).toBe(
      `Nothing was imported:\n  ${path}: ${problem}`,
    );
  });

  it('takes hand-made JSON with little more than contents, a byte order mark before it', async () => {
    const path = join(
      plant({ 'p.json': '\uFEFF[{"content":"a"},{"content":"b","title":"B","tags":"x, y"}]' }),
      'p.json',
    );
    expect(await importFrom(environment, path)).toBe('2 created, 0 changed, 0 unchanged\n');
    expect(await importFrom(environment, path)).toBe('0 created, 0 changed, 2 unchanged\n');
  });

  it('says so when there is no such path', async () => {
    expect(await complaintOf(importFrom(environment, '/nowhere\n/at-all'))).toBe(
      '/nowhere\uFFFD/at-all cannot be read (ENOENT).',
    );
  });

  it('leaves out hidden files and what is not Markdown', async () => {
    const folder = plant({ '.git/a.md': 'x', '.b.md': 'x', 'c.txt': 'x', 'd.md': 'x' });
    expect(await importFrom(environment, folder)).toBe('1 created, 0 changed, 0 unchanged\n');
  });
});

describe('storePosts', () => {
  it('knows what was stored when the database goes away in the middle, and a repeat does the rest', async () => {
    const posts = Array.from({ length: 200 }, (_, number) => ({
      name: `${number}.md`,
      post: {
        ...{
          id: undefined,
          title: null,
          content: 'text',
          author: undefined,
          defaultAuthor: 'blog',
          tags: [],
        },
        ...{ slug: `post-${number}`, status: 'published' as const, version: undefined, source: undefined },
        ...{ publishedAt: undefined, createdAt: undefined, updatedAt: undefined },
      },
    }));
    let done = 0;
    let ended: Promise<unknown> | undefined;
    const other = openDatabase({ url, poolSize: 1, log: createRecordingLog().log });
    onTestFinished(other.close);
    const terminate = sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where pid <> pg_backend_pid() and backend_type = 'client backend'`;
    const onDone = () => {
      if (++done === 20) ended = other.run((db) => db.execute(terminate));
    };
    const { counts, refused, uncertain, untried } = await storePosts({ transfer, posts, onDone });
    await ended;
    expect(uncertain.length).toBeGreaterThan(0);
    expect(refused).toEqual([]);
    expect(counts.created + uncertain.length + untried).toBe(200);
    const stored = await createPostTransfer(other).count();
    expect(stored).toBeGreaterThanOrEqual(counts.created);
    expect(stored).toBeLessThanOrEqual(counts.created + uncertain.length);

    const again = await storePosts({ transfer: createPostTransfer(other), posts, onDone: () => undefined });
    expect(again.counts).toEqual({ created: 200 - stored, changed: 0, unchanged: stored });
  });
});

describe('exportPosts', () => {
  const run = (path: string, options = {}) => {
    collectOutput();
    return exportPosts(environment, path, options);
  };

  it('refuses a folder that is not empty, and a file that exists, unless it is forced', async () => {
    await importFrom(environment, plant({ 'a.md': 'new' }));
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

  it('makes the folders above', async () => {
    await importFrom(environment, plant({ 'a.md': 'text' }));
    const folder = makeFolder();
    await run(join(folder, 'x/y'));
    expect(readTree(folder)).toEqual({ 'x/y/a.md': 'text' });
  });

  it('says what it cannot write', async () => {
    await importFrom(environment, plant({ 'a.md': 'text' }));
    const folder = plant({ file: '' });
    expect(await complaintOf(run(join(folder, 'file')))).toBe(`${folder}/file cannot be written (EEXIST).`);
    expect(await complaintOf(run(join(folder, 'no/posts.json')))).toBe(
      `${folder}/no/posts.json cannot be written (ENOENT).`,
    );
    mkdirSync(join(folder, 'folder/a.md'), { recursive: true });
    expect(await complaintOf(run(join(folder, 'folder'), { force: true }))).toBe(
      `${folder}/folder/a.md cannot be written (EISDIR).`,
    );
  });

  it.each(['../out.md', '/tmp/quillgate-out.md', 'a/../../out.md', 'a.txt', 'a\\..\\out.md/../x.md'])(
    'stays in its folder whatever the database says: %s',
    async (path) => {
      await importFrom(environment, plant({ 'a.md': '---\n# head\n---\ntext' }));
      await database.run((db) => db.update(postSources).set({ path }));
      expect(await exportTree(environment)).toEqual({ 'a.md': '---\n# head\n---\ntext' });
    },
  );

  it('follows no link that lies in its folder', async () => {
    await importFrom(environment, plant({ 'deep/a.md': 'text', 'b.md': 'text' }));
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

  it('gives a second post of one path another', async () => {
    for (const name of ['one', 'two'])
      await importFrom(environment, plant({ 'post.md': `---\nslug: ${name}\n---\n${name}` }));
    expect(await exportTree(environment)).toEqual({
      'post.md': '---\nslug: one\n---\none',
      'two.md': '---\nslug: two\n---\ntwo',
    });
  });

  it('leaves no half file behind', async () => {
    await importFrom(environment, plant({ 'a.md': 'text' }));
    const folder = makeFolder();
    mkdirSync(join(folder, 'posts.json'));
    writeFileSync(join(folder, 'posts.json/x'), '');
    expect(await complaintOf(run(join(folder, 'posts.json'), { force: true }))).toMatch(
      /cannot be written \(E\w+\)\.$/,
    );
    expect(existsSync(join(folder, `posts.json.${process.pid}.tmp`))).toBe(false);
    expect(JSON.parse(await exportJson(environment))).toHaveLength(1);
  });
});
