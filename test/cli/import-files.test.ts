import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { plant } from '../support/folders.js';
import { openPosts } from './post-commands.js';

const { create, importFrom, refusalOf, all } = await openPosts();
const id = '01890a5d-ac96-774b-bcce-b302099a8057';
const yaml = (...lines: string[]) => ['---', ...lines, '---', 'text'].join('\n');
const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();

const noTime = 'must be a time (RFC 3339) or a day (2030-12-31)';
const wholeNumber = 'must be a whole number from 1 to 999999999';

/** Files that cannot be imported, by their names, and why; no problem quotes a canary. */
const refused: Record<string, [content: string | Buffer, ...problems: string[]]> = {
  'blank.md': ['---\ntitle: canary\n---\n \n', 'content: must not be blank'],
  'deep/yaml.MARKDOWN': ['---\ntitle: [canary\n---\ntext', 'line 3: is not valid YAML'],
  'fields.md': [
    yaml(
      ...['id: canary', `title: ${'canary'.repeat(51)}`, 'tags: [a, {canary: b}]', 'slug: Canary'],
      ...['status: canary', 'date: canary'],
    ),
    'line 2: id: must be a UUID',
    'line 3: title: must be at most 300 characters',
    'line 4: tags.1: must be a string',
    'line 5: slug: must be lowercase letters, digits and single hyphens',
    'line 6: status: must be published or draft',
    `line 7: date: ${noTime}`,
  ],
  'author.md': [yaml('author: ""'), 'line 2: author: must not be blank'],
  'version.md': [
    yaml(`id: ${id}`, 'version: canary', 'createdAt: 2026-02-30'),
    `line 4: createdAt: ${noTime}`,
    `line 3: version: ${wholeNumber}`,
  ],
  'great.md': [yaml(`id: ${id.replace('0', '1')}`, 'version: 1000000000'), `line 3: version: ${wholeNumber}`],
  'nul.md': [yaml('# \0canary'), 'must not contain NUL characters'],
  'surrogate.md': [yaml('title: "\\ud800canary"'), 'must be well-formed Unicode'],
  'bytes.md': [Buffer.from([0x66, 0xff]), 'is not UTF-8'],
  'large.md': ['canary'.repeat(350_000), 'is not a file of at most 2097152 bytes'],
  'long.md': ['x'.repeat(262_145), 'content: must be at most 262144 characters'],
  'lines.md': [`${'\n'.repeat(2_000_000)}# Hello`, 'content: must be at most 262144 characters'],
  'parts.md': [
    '---\ntitle: D\n...\nFirst.\n---\nSecond.',
    'line 4: comes after the end of the YAML; front matter ends with ---, and not with ...',
  ],
  '2020-02-30-day.md': ['canary', `its name: date: ${noTime}`],
  '2020-13-01-month.md': [yaml('date:'), `line 2: date: ${noTime}`],
  'upper.md': [yaml('Title: a'), 'line 2: must be written title'],
  'upper-later.md': [yaml('title: a', 'publishedat: 2020-01-01'), 'line 3: must be written publishedAt'],
};

describe('files that cannot be imported', () => {
  it('each problem -> is named with its file and line and quotes nothing, and no file is imported', async () => {
    const contents = Object.entries(refused).map(([name, [content]]) => [name, content]);
    const folder = plant({ ...Object.fromEntries(contents), 'good.md': 'text' });
    mkdirSync(join(folder, 'folder.md'));
    execFileSync('mkfifo', [join(folder, 'pipe.md')]);
    const secret = plant({ 'token.md': 'canary', 'deep/token.md': 'canary' });
    const links = { 'link.md': '/nowhere', 'within.md': 'good.md', 'deep/a.md': join(secret, 'token.md') };
    for (const [name, target] of Object.entries({ ...links, 'linked.md': secret }))
      symlinkSync(target, join(folder, name));

    const named = Object.entries(refused).flatMap(([name, [, ...problems]]) =>
      problems.map((problem) => `  ${name}: ${problem}`),
    );
    const linked = [...Object.keys(links), 'linked.md'].map((name) => `  ${name}: is a symbolic link`);
    const said = (await refusalOf(folder)).split('\n');
    expect(said.toSorted()).toEqual(
      [
        ...['Nothing was imported:', '  pipe.md: is not a file of at most 2097152 bytes'],
        ...[...named, ...linked],
      ].toSorted(),
    );
    expect(await all()).toEqual([]);
  });

  it('ids and slugs that are used twice -> refused, also when they are forced', async () => {
    const folder = plant({
      'a.md': yaml(`id: ${id}`, 'slug: one'),
      'b.md': yaml(`id: ${id.toUpperCase()}`, 'slug: two'),
      'c.md': yaml('slug: two'),
      'd/index.md': yaml('title: Same'),
      'e/index.md': yaml('title: Same'),
    });
    for (const force of [false, true])
      expect(await refusalOf(folder, { force })).toBe(
        [
          'Nothing was imported:',
          '  b.md: id: is the same as that of a.md',
          '  c.md: slug: is the same as that of b.md',
          '  e/index.md: slug: is the same as that of d/index.md',
        ].join('\n'),
      );
  });

  it('the slug of a post that is another one -> refused, also when it is forced', async () => {
    const { post } = await create({ slug: 'taken' });
    const folder = plant({ 'a.md': `---\nid: ${id}\nslug: taken\n---\nother`, 'b.md': 'text' });
    for (const force of [false, true])
      expect(await refusalOf(folder, { force })).toBe(
        `Nothing was imported:\n  a.md: slug: belongs to the post ${post.id}`,
      );
    expect(await all()).toHaveLength(1);
  });

  it('no such folder, or a file -> says so', async () => {
    expect(await refusalOf('/nowhere\n/at-all')).toBe('/nowhere\uFFFD/at-all cannot be read (ENOENT).');
    const folder = plant({ 'posts.json': '[]', 'a.md': 'text' });
    expect(await refusalOf(join(folder, 'a.md'))).toBe(`${folder}/a.md cannot be read (ENOTDIR).`);
    expect(await refusalOf(join(folder, 'posts.json'))).toContain('how a JSON file of 0.7 becomes one');
  });
});

const local = inHours(13).slice(0, 19);
const day = '2019-03-04';
const midnight = 'T00:00:00.000Z';
const draft = { status: 'draft', publishedAt: null };
/** Files of this and other programs, by their names, and the posts that they make, each with another content. */
const taken: Record<string, [text: string, post: object]> = {
  // Posts that other programs do not show are drafts.
  'jekyll.md': [yaml('published: false'), draft],
  '_drafts/jekyll-2.md': ['text', draft],
  'site/_drafts/jekyll-3.md': [yaml('published: true'), draft],
  'hugo.md': [yaml('draft: true'), draft],
  'odd.md': [yaml('Draft: perhaps'), draft],
  'hidden.md': [yaml('hidden: true'), draft],
  'private.md': [yaml('private: Yes'), draft],
  'unlisted.md': [yaml('unlisted: true', 'draft: false'), draft],
  'publish.md': [yaml('publish: No'), draft],
  'password.md': [yaml('password: canary'), draft],
  'expired.md': [yaml('expiryDate: 2000-01-01'), draft],
  'unpublished.md': [yaml('unpublishDate: 2000-01-01'), draft],
  'members.md': [yaml('visibility: members'), draft],
  'garden.md': [yaml('public: false '), draft],
  'unknown.md': [yaml('a: &no false', 'published: *no'), draft],
  'later.md': [yaml('published: 2999-01-01'), { status: 'draft' }],
  'scheduled.md': [yaml('published_at: 2999-01-01'), { status: 'draft' }],
  'address.md': [yaml('permalink: false'), draft],
  'astro.md': [yaml('isDraft: true'), draft],
  'unbuilt.md': [yaml('_build:', '  render: never'), draft],
  'future.md': [yaml('date: 2999-01-01'), { status: 'draft', publishedAt: `2999-01-01${midnight}` }],
  'later-today.md': [yaml(`date: ${inHours(1)}`), { status: 'draft' }],
  'publish-date.md': [yaml('publishDate: 2999-01-01', 'date: 2000-01-01'), { status: 'draft' }],
  '_posts/2999-01-01-a.md': ['text', { status: 'draft', title: 'A' }],
  '2999-1-2-b.md': ['text', { status: 'draft', title: 'B', publishedAt: `2999-01-02${midnight}` }],
  '2999-01-03-c.md': [yaml('date:'), { status: 'draft', publishedAt: `2999-01-03${midnight}` }],
  'eleventy.md': [yaml('eleventyExcludeFromCollections: true'), draft],
  'eleventy-2.md': [yaml('eleventyExcludeFromCollections: [posts]'), draft],
  'zola.md': [yaml('render: false'), draft],
  'grav.md': [yaml('routable: false'), draft],
  'astro-2.md': [yaml("pubDate: 'Jul 08 2999'"), { status: 'draft' }],
  'astro-3.md': [yaml('pubDatetime: 2999-01-01T00:00:00Z'), { status: 'draft' }],
  'unreadable.md': [yaml('pubDate: someday'), draft],
  '_secret.md': ['text', draft],
  '_includes/part.md': ['text', draft],
  'site/_private/deep/part-2.md': ['text', draft],
  '_posts/_hidden-2.md': ['text', draft],
  // These they show, or our own word says so.
  'shown.md': [yaml('published: true'), { status: 'published' }],
  'not-draft.md': [yaml('draft: false', 'hidden: no', 'publish:', 'private: n'), { status: 'published' }],
  'everyone.md': [
    yaml('visibility: public', 'permalink: /x/', 'published: 2020-01-01'),
    { status: 'published' },
  ],
  '_drafts/shown-2.md': [yaml('status: published'), { status: 'published' }],
  'words.md': [yaml('status: published', 'draft: true', 'date: 2999-01-01'), { status: 'published' }],
  'unexpired.md': [yaml('expiryDate: 2999-01-01'), { status: 'published' }],
  // It is this day somewhere on earth.
  'local.md': [yaml(`date: ${local}`), { status: 'published', publishedAt: `${local}.000Z` }],
  // What front matter leaves out comes from the name and the first heading.
  [`${day}-my-first-post.md`]: [
    'text',
    { title: 'My First Post', publishedAt: day + midnight, slug: `${day}-my-first-post` },
  ],
  [`${day}-a-b.md`]: [
    '# The *first* `post`, and more\ntext',
    { title: 'The first post, and more', publishedAt: day + midnight, slug: `${day}-a-b` },
  ],
  [`${day}-given.md`]: [
    yaml('title: Given', 'date: 2020-01-01'),
    { title: 'Given', slug: 'given', publishedAt: `2020-01-01${midnight}` },
  ],
  '2019-02-30-given-day.md': [yaml('date: 2019-03-01'), { title: 'Given Day', slug: '2019-02-30-given-day' }],
  '2019-3-5-short.md': [yaml('date:'), { title: 'Short', publishedAt: `2019-03-05${midnight}` }],
  '_posts/2019-03-06-shown-3.md': ['text', { status: 'published', title: 'Shown 3' }],
  '_own.md': [yaml('status: published'), { status: 'published' }],
  'eleventy-3.md': [
    yaml(
      'eleventyExcludeFromCollections: false',
      'render: true',
      "pubDate: 'Jul 08 2022'",
      'permalink: /2999/',
    ),
    { status: 'published' },
  ],
  'snake_case.md': ['text', { status: 'published' }],
  'heading.md': ['---\ntags: x, y\n---\n\n# Hello', { title: 'Hello', slug: 'heading', tags: ['x', 'y'] }],
  'no-title.md': ['---\ntitle:\n---\n# Hello', { title: null, slug: 'no-title' }],
  '2019-03-07-jekylls.md': [yaml('tags:  rail  sea '), { tags: ['rail', 'sea'] }],
  '2019-03-08-commas.md': [yaml('tags: rail sea, hills'), { tags: ['rail sea', 'hills'] }],
  'hexo.md': [yaml('tags: rail sea'), { tags: ['rail sea'] }],
  'second.md': ['## Hello', { title: null }],
  'late.md': ['text\n\n# Hello', { title: null }],
  'linked.md': ['# [x](y)\n', { title: null }],
  // Other endings and names.
  'Upper.MD': ['text', { slug: 'upper' }],
  'long.markdown': ['text', { slug: 'long' }],
  'trip/index.md': ['text', { slug: 'trip' }],
  'walk/index.de.md': ['text', { slug: 'walk-de' }],
  'bundle/2019-03-04-a-walk/index.md': ['text', { title: 'A Walk', publishedAt: day + midnight }],
};

describe('files that can be imported', () => {
  it('each -> is the post that its program shows, and drafts are named with the reason', async () => {
    const files = Object.entries(taken).map(([name, [text]]) => [name, `${text}\n\nof ${name}`]);
    const folder = plant(Object.fromEntries(files));
    const link = join(plant({}), 'link');
    symlinkSync(folder, link);
    const said = await importFrom(link);
    expect(said).toContain(`${files.length} created, 0 changed, 0 unchanged\nDrafts, because of:\n`);
    for (const line of ['  draft (1): hugo.md', '  Draft (1): odd.md', '  password (1): password.md'])
      expect(said).toContain(`${line}\n`);
    expect(said).toContain('  _drafts (2): _drafts/jekyll-2.md, site/_drafts/jekyll-3.md\n');
    expect(said).toMatch(
      /\n {2}date \(5\): 2999-01-03-c\.md, 2999-1-2-b\.md, _posts\/2999-01-01-a\.md, future\.md, later-today\.md\n/,
    );
    expect(said).toContain(
      '  a name that begins with _ (4): _includes/part.md, _posts/_hidden-2.md, _secret.md, ',
    );
    expect(said).not.toContain('canary');
    const posts = new Map((await all()).map((post) => [post.content.split('of ').at(-1) ?? '', post]));
    for (const [name, [, post]] of Object.entries(taken)) expect(posts.get(name), name).toMatchObject(post);
    expect(posts.size).toBe(files.length);
  });

  it('at the top -> an index.md is named for the imported folder, and what is in _drafts is a draft', async () => {
    const folder = plant({ 'trip/index.md': 'trip', 'home/index.md': 'home', 'site/_drafts/2026/a.md': 'a' });
    for (const name of ['trip', 'home', 'site/_drafts/2026']) await importFrom(join(folder, name));
    const posts = (await all()).map(({ slug, status }) => [slug, status]);
    expect(posts).toEqual([
      ['trip', 'published'],
      ['home', 'published'],
      ['a', 'draft'],
    ]);
  });

  it('front matter that is not used -> named with its files, the most frequent first', async () => {
    const folder = plant({
      'a.md': yaml('layout: post', 'categories: [x]'),
      'b.md': yaml('layout: post', '"odd\\nname": x', `${'long'.repeat(30)}: x`, 'version: 3'),
      'c.md': yaml('layout: [canary]', 'publishedAt: 2020-01-01', 'date: 2020-01-02', 'content: x'),
      'd.md': yaml('constructor: x', '__proto__: x'),
    });
    expect(await importFrom(folder)).toBe(
      [
        '4 created, 0 changed, 0 unchanged',
        'Fields that were not used:',
        ...['  layout (3): a.md, b.md, c.md', '  categories (1): a.md', '  odd\uFFFDname (1): b.md'],
        ...[`  ${'long'.repeat(16)} (1): b.md`, '  version (1): b.md', '  date (1): c.md'],
        ...['  content (1): c.md', '  constructor (1): d.md', '  __proto__ (1): d.md', ''],
      ].join('\n'),
    );
  });

  it('files that are no posts here -> are named by their endings', async () => {
    const images = Array.from({ length: 25 }, (_, n) => [`images/${n + 10}.jpg`, 'x']);
    const others = ['_index.md', 'deep/_index.markdown', 'a.mdx', 'b.html', 'c.rst', 'notes', '.draft.md'];
    const folder = plant({
      ...Object.fromEntries([...images, ...others.map((name) => [name, 'x'])]),
      ...{ 'good.md': 'text', '.git/a.md': 'x' },
    });
    symlinkSync(plant({ 'secret.md': 'x' }), join(folder, 'linked'));
    const said = await importFrom(folder);
    expect(said).toContain(
      '1 created, 0 changed, 0 unchanged\nFiles that were not read:\n  .jpg (25): images/10.jpg, ',
    );
    expect(said).toContain('images/29.jpg, and 5 more\n');
    for (const name of [...others, 'linked']) expect(said).toContain(name);
    expect(said).not.toContain('.git');
    expect(await all()).toHaveLength(1);
  });
});
