import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { plant } from '../support/folders.js';
import { openPosts } from './post-commands.js';

const { create, importFrom, refusalOf, exportJson } = await openPosts();
const id = '01890a5d-ac96-774b-bcce-b302099a8057';

describe('importPosts', () => {
  it('names every problem with its file, quotes none, and writes nothing', async () => {
    const folder = plant({
      'good.md': 'text',
      'blank.md': '---\ntitle: canary\n---\n \n',
      'deep/yaml.md': '---\ntitle: [canary\n---\ntext',
      'fields.md': `---\nid: canary\ntitle: ${'canary'.repeat(51)}\ntags: [a, {canary: b}]\nslug: Canary\nstatus: canary\ndate: canary\ndraft: canary\n---\ntext`,
      'author.md': '---\nauthor: ""\nstatus: published\ndraft: true\n---\ntext',
      'version.md': `---\nid: ${id}\nversion: canary\ncreatedAt: 2026-02-30\n---\ntext`,
      'great.md': `---\nid: ${id}\nversion: 1000000000\ncreatedAt: 0099-12-31\n---\ntext`,
      'nul.md': '---\n# \0canary\n---\ntext',
      'bytes.md': Buffer.from([0x66, 0xff]),
      'large.md': 'canary'.repeat(700_000),
      'long.md': 'x'.repeat(262_145),
    });
    mkdirSync(join(folder, 'folder.md'));
    symlinkSync('/nowhere', join(folder, 'link.md'));
    expect((await refusalOf(folder)).split('\n').sort()).toEqual(
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
        '  great.md: createdAt: must be a time (RFC 3339) or a day (2030-12-31)',
        '  great.md: version: must be at most 999999999',
        '  large.md: is larger than 4194304 bytes',
        '  link.md: is a symbolic link',
        '  long.md: content: must be at most 262144 characters',
        '  nul.md: head: must not contain NUL characters',
        '  version.md: createdAt: must be a time (RFC 3339) or a day (2030-12-31)',
        '  version.md: version: must be a whole number, 1 or more',
      ].sort(),
    );
    expect(await exportJson()).toBe('[]\n');
  });

  it('refuses ids and slugs that are used twice', async () => {
    const folder = plant({
      'a.md': `---\nid: ${id}\nslug: one\n---\ntext`,
      'b.md': `---\nid: ${id.toUpperCase()}\nslug: two\n---\ntext`,
      'c.md': '---\nslug: two\n---\ntext',
    });
    expect(await refusalOf(folder)).toBe(
      'Nothing was imported:\n  b.md: id: is the same as that of a.md\n  c.md: slug: is the same as that of b.md',
    );
  });

  it('refuses the slug of a post that is another one', async () => {
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
  ])('refuses the JSON %s', async (json, problem) => {
    const path = join(plant({ 'posts.json': json }), 'posts.json');
    expect(await refusalOf(path)).toBe(`Nothing was imported:\n  ${path}: ${problem}`);
  });

  it('takes hand-made JSON with little more than contents, a byte order mark before it', async () => {
    const path = join(
      plant({ 'p.json': '\uFEFF[{"content":"a"},{"content":"b","title":"B","tags":"x, y"}]' }),
      'p.json',
    );
    expect(await importFrom(path)).toBe('2 created, 0 changed, 0 unchanged\n');
    expect(await importFrom(path)).toBe('0 created, 0 changed, 2 unchanged\n');
  });

  it('says so when there is no such path', async () => {
    expect(await refusalOf('/nowhere\n/at-all')).toBe('/nowhere\uFFFD/at-all cannot be read (ENOENT).');
  });

  it('reads nothing that a link leads to, and names the links', async () => {
    const secret = plant({ 'token.md': 'canary', 'deep/token.md': 'canary' });
    const folder = plant({ 'good.md': 'text', 'deep/good.md': 'text' });
    symlinkSync(join(secret, 'token.md'), join(folder, 'deep/a.md'));
    symlinkSync('good.md', join(folder, 'within.md'));
    symlinkSync(secret, join(folder, 'folder.md'));
    symlinkSync(secret, join(folder, 'folder'));
    symlinkSync(join(secret, 'token.md'), join(folder, 'image.png'));
    expect(await refusalOf(folder)).toBe(
      [
        'Nothing was imported:',
        ...['deep/a.md', 'folder', 'folder.md', 'within.md'].map((path) => `  ${path}: is a symbolic link`),
      ].join('\n'),
    );
    expect(await exportJson()).toBe('[]\n');
  });

  it('waits for no pipe', async () => {
    const folder = plant({ 'good.md': 'text' });
    execFileSync('mkfifo', [join(folder, 'pipe.md')]);
    expect(await refusalOf(folder)).toContain('  pipe.md: is not a file');
  });

  it('takes a path that is a link itself', async () => {
    const link = join(plant({}), 'link');
    symlinkSync(plant({ 'a.md': 'text' }), link);
    expect(await importFrom(link)).toBe('1 created, 0 changed, 0 unchanged\n');
  });

  it('leaves out hidden files and what is not Markdown', async () => {
    const folder = plant({ '.git/a.md': 'x', '.b.md': 'x', 'c.txt': 'x', 'd.md': 'x' });
    expect(await importFrom(folder)).toBe('1 created, 0 changed, 0 unchanged\n');
  });
});
