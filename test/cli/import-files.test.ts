import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { plant, readTree } from '../support/folders.js';
import { openPosts } from './post-commands.js';

const { database, create, forget, importFrom, refusalOf, exportTree, exportJson } = await openPosts();
const id = '01890a5d-ac96-774b-bcce-b302099a8057';
const yaml = (...lines: string[]) => ['---', ...lines, '---', 'text'].join('\n');
const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();

const noTime = 'must be a time (RFC 3339) or a day (2030-12-31)';
const notShown = 'says that the post is not public; import it as a draft (draft: true), or take it out';
const future = 'is in the future, and the blog does not wait for it; import it as a draft (draft: true)';
const toYaml = 'which is not read; hugo convert toYAML makes YAML of it';

/** Files that cannot be imported, by their names, and why; no problem quotes a canary. */
const refused: Record<string, [content: string | Buffer, ...problems: string[]]> = {
  'blank.md': ['---\ntitle: canary\n---\n \n', 'content: must not be blank'],
  'deep/yaml.md': ['---\ntitle: [canary\n---\ntext', 'line 3: is not valid YAML'],
  'fields.md': [
    yaml(
      ...['id: canary', `title: ${'canary'.repeat(51)}`, 'tags: [a, {canary: b}]', 'slug: Canary'],
      ...['status: canary', 'date: canary', 'draft: canary'],
    ),
    'id: must be a UUID',
    'title: must be at most 300 characters',
    'tags.1: must be a string',
    'slug: must be lowercase letters, digits and single hyphens',
    'status: must be published or draft',
    `date: ${noTime}`,
    'draft: must be true or false',
  ],
  'author.md': [
    yaml('author: ""', 'status: published', 'draft: true'),
    'author: must not be blank',
    'draft: contradicts status',
  ],
  'version.md': [
    yaml(`id: ${id}`, 'version: canary', 'createdAt: 2026-02-30'),
    `createdAt: ${noTime}`,
    'version: must be a whole number, 1 or more',
  ],
  'great.md': [
    yaml(`id: ${id.replace('0', '1')}`, 'version: 1000000000', 'createdAt: 0099-12-31'),
    `createdAt: ${noTime}`,
    'version: must be at most 999999999',
  ],
  'nul.md': [yaml('# \0canary'), 'head: must not contain NUL characters'],
  'bytes.md': [Buffer.from([0x66, 0xff]), 'is not UTF-8'],
  'large.md': ['canary'.repeat(700_000), 'is larger than 4194304 bytes'],
  'long.md': ['x'.repeat(262_145), 'content: must be at most 262144 characters'],
  'lines.md': [`${'\n'.repeat(4_000_000)}# Hello`, 'content: must be at most 262144 characters'],
  // What other programs write, and do not show in words that are not ours.
  'toml.md': ['+++\ntitle = "canary"\ndraft = true\n+++\ntext', `has TOML front matter, ${toYaml}`],
  'toml-later.md': ['\uFEFF\n+++ \r\ndraft = true\r\n+++\r\ntext', `has TOML front matter, ${toYaml}`],
  'json.md': ['{\n  "title": "canary", "draft": true\n}\ntext', `has JSON front matter, ${toYaml}`],
  'later.md': ['\n---\ndraft: true\n---\ntext', 'has front matter that does not begin in the first line'],
  'dots.md': ['---\ndraft: true\n...\ntext', 'has front matter that does not end with ---'],
  'bare.md': ['Title: canary\nStatus: draft\n\ntext', 'has front matter that is not between lines of ---'],
  'published.md': [yaml('published: canary'), 'published: must be true or false'],
  'no.md': [yaml('published: no'), 'published: must be true or false'],
  'not-draft.md': [yaml('published: false', 'draft: false'), 'published: contradicts draft'],
  'not-status.md': [yaml('published: false', 'status: published'), 'published: contradicts status'],
  'upper.md': [yaml('Draft: true'), 'line 2: must be written draft'],
  'upper-later.md': [yaml('title: a', 'Published: false'), 'line 3: must be written published'],
  'merge.md': [yaml('<<: {draft: true}'), 'line 2: << is not read'],
  'future.md': [yaml('date: 2999-01-01'), `date: ${future}`],
  'later-today.md': [yaml(`date: ${inHours(1)}`), `date: ${future}`],
  '_posts/2999-01-01-a.md': ['text', `date: ${future}`],
  'publish-date.md': [yaml('publishDate: 2999-01-01', 'date: 2000-01-01'), `publishDate: ${future}`],
  'expired.md': [yaml('expiryDate: 2000-01-01'), `expiryDate: ${notShown}`],
  'publish.md': [yaml('publish: false'), `publish: ${notShown}`],
  'hidden.md': [yaml('hidden: true'), `hidden: ${notShown}`],
  'private.md': [yaml('private: Yes'), `private: ${notShown}`],
  'unlisted.md': [yaml('unlisted: true'), `unlisted: ${notShown}`],
};

describe('files that cannot be imported', () => {
  it('each problem -> is named with its file and quotes nothing, and no file is imported', async () => {
    const contents = Object.entries(refused).map(([name, [content]]) => [name, content]);
    const folder = plant({ ...Object.fromEntries(contents), 'good.md': 'text' });
    mkdirSync(join(folder, 'folder.md'));
    execFileSync('mkfifo', [join(folder, 'pipe.md')]);
    const secret = plant({ 'token.md': 'canary', 'deep/token.md': 'canary' });
    const links = { 'link.md': '/nowhere', 'within.md': 'good.md', 'deep/a.md': join(secret, 'token.md') };
    const folders = { linked: secret, 'linked.md': secret };
    for (const [name, target] of Object.entries({ ...links, ...folders }))
      symlinkSync(target, join(folder, name));
    symlinkSync(join(secret, 'token.md'), join(folder, 'image.png'));

    const named = Object.entries(refused).flatMap(([name, [, ...problems]]) =>
      problems.map((problem) => `  ${name}: ${problem}`),
    );
    const linked = Object.keys({ ...links, ...folders }).map((name) => `  ${name}: is a symbolic link`);
    const said = (await refusalOf(folder)).split('\n');
    expect(said.toSorted()).toEqual(
      ['Nothing was imported:', '  pipe.md: is not a file', ...named, ...linked].toSorted(),
    );
    expect(await exportJson()).toBe('[]\n');
  });

  it('ids and slugs that are used twice -> refused', async () => {
    const folder = plant({
      'a.md': yaml(`id: ${id}`, 'slug: one'),
      'b.md': yaml(`id: ${id.toUpperCase()}`, 'slug: two'),
      'c.md': yaml('slug: two'),
    });
    expect(await refusalOf(folder)).toBe(
      'Nothing was imported:\n  b.md: id: is the same as that of a.md\n  c.md: slug: is the same as that of b.md',
    );
  });

  it('the slug of a post that is another one -> refused', async () => {
    const { post } = await create({ slug: 'taken' });
    const folder = plant({ 'a.md': `---\nid: ${id}\nslug: taken\n---\nother`, 'b.md': 'text' });
    expect(await refusalOf(folder)).toBe(
      `Nothing was imported:\n  a.md: slug: belongs to the post ${post.id}`,
    );
    expect(JSON.parse(await exportJson())).toHaveLength(1);
  });

  it.each([
    ['{}', 'must be a JSON array of posts'],
    ['[', 'must be a JSON array of posts'],
    ['', 'must be a JSON array of posts'],
    ['[{"content":"a"},5]', 'post 2: content: is required'],
    ['[{"content":"\\ud800"}]', 'post 1: must be well-formed Unicode'],
    ['[{"content":"a","tags":["a\\u0000"]}]', 'post 1: tags.0: must not contain NUL characters'],
    ['[{"content":"a","__proto__":{"content":1},"id":7}]', 'post 1: id: must be a UUID'],
  ])('the JSON %s -> refused', async (json, problem) => {
    const path = join(plant({ 'posts.json': json }), 'posts.json');
    expect(await refusalOf(path)).toBe(`Nothing was imported:\n  ${path}: ${problem}`);
  });

  it('no such path -> says so', async () => {
    expect(await refusalOf('/nowhere\n/at-all')).toBe('/nowhere\uFFFD/at-all cannot be read (ENOENT).');
  });
});

const local = inHours(13).slice(0, 19);
const day = '2019-03-04';
const midnight = 'T00:00:00.000Z';
/** Files of this and other programs, by their names, and what the posts are that they make. */
const taken: Record<string, [text: string, post: object]> = {
  'jekyll.md': [yaml('published: false'), { status: 'draft', publishedAt: null }],
  '_drafts/jekyll.md': ['text', { status: 'draft', publishedAt: null }],
  'site/_drafts/jekyll.md': [yaml('published: true'), { status: 'draft', publishedAt: null }],
  'hugo.md': [yaml('draft: true'), { status: 'draft', publishedAt: null }],
  'shown.md': [yaml('published: true'), { status: 'published' }],
  'not-draft.md': [yaml('draft: false'), { status: 'published' }],
  // Our own word counts more than the folder.
  '_drafts/shown.md': [yaml('status: published'), { status: 'published' }],
  'words.md': [
    yaml('draft: true', 'date: 2999-01-01', 'hidden: true', 'expiryDate: 2000-01-01'),
    { status: 'draft' },
  ],
  // It is this day somewhere on earth.
  'local.md': [yaml(`date: ${local}`), { publishedAt: `${local}.000Z` }],
  // What front matter leaves out comes from the name and the first heading.
  [`${day}-my-first-post.md`]: ['text', { title: 'My First Post', publishedAt: day + midnight }],
  [`${day}-a-b.md`]: [
    '# The *first* `post` &amp; more #\ntext',
    { title: 'The first post & more', publishedAt: day + midnight, slug: `${day}-a-b` },
  ],
  [`${day}-given.md`]: [
    yaml('title: Given', 'date: 2020-01-01'),
    { title: 'Given', publishedAt: `2020-01-01${midnight}` },
  ],
  '2019-02-30-a.md': ['text', { title: null }],
  'underlined.md': ['\n\nHello\n=====\ntext', { title: 'Hello' }],
  'heading.md': ['---\ntags: [x]\n---\n\n# Hello', { title: 'Hello', tags: ['x'] }],
  'no-title.md': ['---\ntitle:\n---\n# Hello', { title: null }],
  'second.md': ['## Hello', { title: null }],
  'late.md': ['text\n\n# Hello', { title: null }],
  'long.md': [`# ${'x'.repeat(301)}`, { title: null }],
  'picture.md': ['# ![](x.png)\n', { title: null }],
  'word.md': ['#hello', { title: null }],
  'code.md': ['    # code', { title: null }],
  // These look only a little like front matter.
  'rule.md': ['---\na rule', { content: '---\na rule' }],
  'rules.md': ['\n---\n\na rule\n\n---\n', {}],
  'template.md': ['{{ x }}', {}],
  'liquid.md': ['{% raw %}', {}],
  'note.md': ['Note: x\n\ntext', {}],
  'plus.md': ['+++', {}],
};

describe('files that can be imported', () => {
  it('each -> is the post that its program shows, and comes out as it went in', async () => {
    const files = Object.fromEntries(Object.entries(taken).map(([name, [text]]) => [name, text]));
    const folder = plant(files);
    const left = plant({ ...files, '.git/a.md': 'x', '.b.md': 'x', 'c.txt': 'x' });
    // A path that is a link itself.
    const link = join(plant({}), 'link');
    symlinkSync(left, link);
    expect(await importFrom(link)).toContain(
      `${Object.keys(taken).length} created, 0 changed, 0 unchanged\n`,
    );
    expect(await exportTree()).toEqual(readTree(folder));
    const rows = await database.run((db) => db.execute<{ path: string; id: string }>(sourcesOfPosts));
    const posts = new Map(JSON.parse(await exportJson()).map((post: { id: string }) => [post.id, post]));
    for (const { path, id } of rows) expect(posts.get(id), path).toMatchObject(taken[path]?.[1] ?? {});
    expect(rows).toHaveLength(Object.keys(taken).length);
  });

  it('a post that is no longer what its name and heading say -> that is written', async () => {
    const files = { '2019-03-04-a.md': '# One\ntext', '_drafts/b.md': '# Two\ntext', 'c.md': '# Three' };
    const facts = async () =>
      JSON.parse(await exportJson())
        .map(({ title, slug, status, publishedAt }: Record<string, string>) => [
          slug,
          title,
          status,
          publishedAt,
        ])
        .toSorted();
    await importFrom(plant(files));
    for (const options of [{ full: true }, { full: false }]) {
      await database.run((db) =>
        db.execute(`update posts set title = case when title like 'T%' then null else 'Other' end,
          status = 'published', published_at = '2020-01-01', version = version + 1`),
      );
      const [tree, before] = [await exportTree(options), await facts()];
      await forget();
      await importFrom(plant(tree));
      expect(await facts()).toEqual(before);
    }
  });

  it('hand-made JSON with little more than contents, behind a byte order mark -> imported, once', async () => {
    const json = '\uFEFF[{"content":"a"},{"content":"b","title":"B","tags":"x, y"}]';
    const path = join(plant({ 'p.json': json }), 'p.json');
    expect(await importFrom(path)).toBe('2 created, 0 changed, 0 unchanged\n');
    expect(await importFrom(path)).toBe('0 created, 0 changed, 2 unchanged\n');
  });

  it('front matter that is not used -> named with the number of its files, the most frequent first', async () => {
    const folder = plant({
      'a.md': yaml('layout: post', 'categories: [x]'),
      'b.md': yaml('layout: post', '"odd\\nname": x', `${'long'.repeat(30)}: x`, 'version: 3'),
      'c.md': yaml('layout: [canary]', 'expiryDate: 2999-01-01', '? [a]\n: b'),
    });
    expect(await importFrom(folder)).toBe(
      [
        '3 created, 0 changed, 0 unchanged',
        'Fields that were not used: layout (3), categories (1), expiryDate (1), ' +
          `${'long'.repeat(16)}… (1), odd\uFFFDname (1), version (1)`,
        '',
      ].join('\n'),
    );
    const fields = Object.fromEntries(Array.from({ length: 25 }, (_, number) => [`x${number + 10}`, 1]));
    const json = plant({ 'a.json': JSON.stringify([{ content: 'a', ...fields }]) });
    const said = await importFrom(`${json}/a.json`);
    expect(said).toMatch(/\nFields that were not used: x10 \(1\), .*x29 \(1\) and 5 more\n/);
  });
});

const sourcesOfPosts = 'select path, post_id as id from post_sources';
