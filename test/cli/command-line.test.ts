import { execFile } from 'node:child_process';
import { chmodSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Ran, quillgate as run } from '../support/command-line.js';
import { startTestDatabase } from '../support/database.js';
import { makeFolder, plant, readTree } from './post-trees.js';

const server = await startTestDatabase();
afterAll(server.stop);
const launcher = resolve(import.meta.dirname, '../../bin/quillgate');

const here = { DATABASE_URL: server.url };
const quillgate = (args: string[], environment: Record<string, string> = here) => run(args, environment);

/** Runs a copy of the launcher that has no packages beside it, on a machine whose Node is of this version. */
function launchOn(version: string | undefined): Promise<Ran> {
  const node = version === undefined ? 'exit 127' : `echo ${version}`;
  const folder = plant({
    'bin/node': `#!/bin/sh\n${node}\n`,
    'copy/bin/quillgate': readFileSync(launcher, 'utf8'),
  });
  chmodSync(join(folder, 'bin/node'), 0o755);
  const env = { PATH: `${join(folder, 'bin')}:/usr/bin:/bin` };
  return new Promise((done) => {
    execFile('sh', [join(folder, 'copy/bin/quillgate'), 'api'], { env }, (error, stdout, stderr) => {
      done({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

describe('quillgate', () => {
  it('manages users', async () => {
    const added = await quillgate(['users', 'create', 'Zoë', '--json']);
    expect(added).toMatchObject({ code: 0, stderr: expect.stringContaining('not shown again') });
    expect(Object.keys(JSON.parse(added.stdout))).toEqual(['id', 'name', 'secret']);
    expect((await quillgate(['users', 'list'])).stdout).toContain('Zoë');
    expect(await quillgate(['users', 'remove', 'Zoë'])).toMatchObject({ code: 0, stderr: '' });
    expect((await quillgate(['audit', '--limit', '1'])).stdout).toContain('users.remove');
    expect(await quillgate(['users', 'remove', 'Zoë'])).toEqual({
      code: 1,
      stdout: '',
      stderr: 'There is no such user; see quillgate users list.\n',
    });
  });

  it('moves posts in and out', async () => {
    const folder = plant({ 'a/b.md': '---\n# c\n---\ntext' });
    expect(await quillgate(['posts', 'import', folder])).toEqual({
      code: 0,
      stdout: '',
      stderr: '1 created, 0 changed, 0 unchanged\n',
    });
    const exported = makeFolder();
    const { code, stderr } = await quillgate(['posts', 'export', exported]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: `1 post exported to ${exported}.\n` });
    expect(readTree(exported)).toEqual(readTree(folder));
    expect((await quillgate(['posts', 'export', exported])).code).toBe(1);
    expect((await quillgate(['posts', 'export', '--force', '--full', exported])).code).toBe(0);
  });

  it('explains in a sentence what keeps it from its work', async () => {
    const away = await quillgate(['users', 'list'], { DATABASE_URL: 'postgres://u:canary@127.0.0.1:1/db' });
    expect(away).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^The database cannot be used: .*\.\n$/),
    });
    const none = await quillgate(['posts', 'export', 'x'], {});
    expect(none.stderr).toBe(
      'There is no database to work on: set DATABASE_URL, or run npm start here, which leaves its own address in .data/database-url.\n',
    );
  });

  it.each([
    ['v20.19.5', 'v20.19.5'],
    [undefined, 'none'],
  ])(
    'says in a line that it needs a newer Node, where the lockfile brings none: %s',
    async (version, named) => {
      expect(await launchOn(version)).toEqual({
        code: 1,
        stdout: '',
        stderr: `quillgate needs Node 24 or newer, and this machine has ${named}.\n`,
      });
    },
  );

  it.each(['v24.0.0', 'v26.1.0'])('goes on with the Node of the machine: %s', async (version) => {
    expect((await launchOn(version)).stderr).toMatch(/^There is no api in dist/);
  });
});
