import { describe, expect, it } from 'vitest';
import { plant, readTree } from '../support/folders.js';
import { openPosts } from './post-commands.js';

const { database, forget, importFrom, refusalOf, exportTree, exportJson } = await openPosts();

const yaml = (...lines: string[]) => ['---', ...lines, '---', 'text'].join('\n');

/** Imports the file and gives its post. */
async function postOf(path: string, text: string) {
  await importFrom(plant({ [path]: text }));
  const [post] = JSON.parse(await exportJson());
  return post;
}

describe('a file of another program', () => {
  it.each([
    ['draft', 'a.md', yaml('published: false')],
    ['draft', '_drafts/a.md', 'text'],
    ['draft', 'site/_drafts/a.md', yaml('published: true')],
    ['draft', 'a.md', yaml('draft: true')],
    ['published', 'a.md', yaml('published: true')],
    ['published', 'a.md', yaml('draft: false')],
    // Our own word counts more than the folder.
    ['published', '_drafts/a.md', yaml('status: published')],
  ])('is public where Jekyll or Hugo shows it, else a draft: %s, %s, %j', async (status, path, text) => {
    const time = status === 'draft' ? null : expect.any(String);
    expect(await postOf(path, text)).toMatchObject({ status, publishedAt: time });
  });

  const notShown = 'says that the post is not public; import it as a draft (draft: true), or take it out';
  const future = 'is in the future, and the blog does not wait for it; import it as a draft (draft: true)';
  const hugo = 'has TOML front matter, which is not read; hugo convert toYAML makes YAML of it';
  it.each([
    ['+++\ntitle = "canary"\ndraft = true\n+++\ntext', hugo],
    ['\uFEFF\n+++ \r\ndraft = true\r\n+++\r\ntext', hugo],
    [
      '{\n  "title": "canary", "draft": true\n}\ntext',
      'has JSON front matter, which is not read; hugo convert toYAML makes YAML of it',
    ],
    ['\n---\ndraft: true\n---\ntext', 'has front matter that does not begin in the first line'],
    ['---\ndraft: true\n...\ntext', 'has front matter that does not end with ---'],
    ['Title: canary\nStatus: draft\n\ntext', 'has front matter that is not between lines of ---'],
    [yaml('published: canary'), 'published: must be true or false'],
    [yaml('published: no'), 'published: must be true or false'],
    [yaml('published: false', 'draft: false'), 'published: contradicts draft'],
    [yaml('published: false', 'status: published'), 'published: contradicts status'],
    [yaml('Draft: true'), 'line 2: must be written draft'],
    [yaml('title: a', 'Published: false'), 'line 3: must be written published'],
    [yaml('<<: {draft: true}'), 'line 2: << is not read'],
    [yaml('date: 2999-01-01'), `date: ${future}`],
    [yaml('publishDate: 2999-01-01', 'date: 2000-01-01'), `publishDate: ${future}`],
    [yaml('expiryDate: 2000-01-01'), `expiryDate: ${notShown}`],
    [yaml('publish: false'), `publish: ${notShown}`],
    [yaml('hidden: true'), `hidden: ${notShown}`],
    [yaml('private: Yes'), `private: ${notShown}`],
    [yaml('unlisted: true'), `unlisted: ${notShown}`],
  ])('is refused by name where it is not public in words that are not ours: %j', async (text, problem) => {
    const folder = plant({ 'a.md': text, 'good.md': 'text' });
    expect(await refusalOf(folder)).toBe(`Nothing was imported:\n  a.md: ${problem}`);
    expect(await exportTree()).toEqual({});
  });

  it('may have such words and be a draft', async () => {
    const text = yaml('draft: true', 'date: 2999-01-01', 'hidden: true', 'expiryDate: 2000-01-01');
    expect(await postOf('a.md', text)).toMatchObject({ status: 'draft' });
  });

  it('may be of this day anywhere on earth, but not later today', async () => {
    const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
    const local = inHours(13).slice(0, 19);
    expect(await postOf('a.md', yaml(`date: ${local}`))).toMatchObject({ publishedAt: `${local}.000Z` });
    const later = plant({ 'a.md': yaml(`date: ${inHours(1)}`) });
    expect(await refusalOf(later)).toContain('a.md: date: is in the future');
  });

  it('is refused for a name that is a day of the future', async () => {
    const folder = plant({ '_posts/2999-01-01-a.md': 'text' });
    expect(await refusalOf(folder)).toContain('2999-01-01-a.md: date: is in the');
  });

  it('does not keep content that only looks a little like front matter from being imported', async () => {
    const texts = [
      '---\na rule',
      '\n---\n\na rule\n\n---\n',
      '{{ x }}',
      '{% raw %}',
      'Note: x\n\ntext',
      '+++',
    ];
    const folder = plant(Object.fromEntries(texts.map((text, number) => [`${number}.md`, text])));
    expect(await importFrom(folder)).toBe(`${texts.length} created, 0 changed, 0 unchanged\n`);
    expect(await exportTree()).toEqual(readTree(folder));
  });
});

describe('what front matter leaves out', () => {
  it.each([
    ['2019-03-04-my-first-post.md', 'text', 'My First Post', '2019-03-04T00:00:00.000Z'],
    ['2019-03-04-a.md', '# The *first* `post` &amp; more #\ntext', 'The first post & more', '2019-03-04'],
    ['2019-03-04-a.md', yaml('title: Given', 'date: 2020-01-01'), 'Given', '2020-01-01'],
    ['2019-02-30-a.md', 'text', null, '20'],
    ['a.md', '\n\nHello\n=====\ntext', 'Hello', '20'],
    ['a.md', '---\ntags: [x]\n---\n\n# Hello', 'Hello', '20'],
    ['a.md', '---\ntitle:\n---\n# Hello', null, '20'],
    ['a.md', '## Hello', null, '20'],
    ['a.md', 'text\n\n# Hello', null, '20'],
    ['a.md', `# ${'x'.repeat(301)}`, null, '20'],
    ['a.md', '# ![](x.png)\n', null, '20'],
    ['a.md', '#hello', null, '20'],
    ['a.md', '    # code', null, '20'],
  ])('comes from its name and its first heading: %s, %j', async (path, text, title, publishedAt) => {
    const post = await postOf(path, text);
    expect(post.title).toBe(title);
    expect(post.publishedAt.startsWith(publishedAt)).toBe(true);
  });

  it('is not looked for among millions of empty lines', async () => {
    const folder = plant({ 'a.md': `${'\n'.repeat(4_000_000)}# Hello` });
    expect(await refusalOf(folder)).toBe(
      'Nothing was imported:\n  a.md: content: must be at most 262144 characters',
    );
  });

  it('changes no slug that the name of the file has made', async () => {
    expect(await postOf('2019-03-04-a-b.md', '# Hello')).toMatchObject({ slug: '2019-03-04-a-b' });
  });

  it('is written when it is no longer what the name and the heading say', async () => {
    const files = { '2019-03-04-a.md': '# One\ntext', '_drafts/b.md': '# Two\ntext', 'c.md': '# Three' };
    await importFrom(plant(files));
    expect(await exportTree()).toEqual(readTree(plant(files)));
    for (const options of [{ full: true }, { full: false }]) {
      await database.run((db) =>
        db.execute(`update posts set title = case when title like 'T%' then null else 'Other' end,
          status = 'published', published_at = '2020-01-01', version = version + 1`),
      );
      const [tree, json] = [await exportTree(options), await exportJson()];
      await forget();
      await importFrom(plant(tree));
      expect(pick(await exportJson())).toEqual(pick(json));
    }
  });

  const pick = (json: string) =>
    JSON.parse(json)
      .map(({ title, slug, status, publishedAt }: Record<string, string>) => ({
        title,
        slug,
        status,
        publishedAt,
      }))
      .sort((a: { slug: string }, b: { slug: string }) => (a.slug < b.slug ? -1 : 1));
});

describe('front matter that is not used', () => {
  it('is named with the number of its files, the most frequent first', async () => {
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
  });

  it('is named of JSON too, and twenty names at most', async () => {
    const fields = Object.fromEntries(Array.from({ length: 25 }, (_, number) => [`x${number + 10}`, 1]));
    const folder = plant({ 'a.json': JSON.stringify([{ content: 'a', ...fields }]) });
    const said = await importFrom(`${folder}/a.json`);
    expect(said).toContain('\nFields that were not used: x10 (1), ');
    expect(said).toContain('x29 (1) and 5 more\n');
  });
});
