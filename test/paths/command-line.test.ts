import { execFile } from 'node:child_process';
import { chmodSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Ran, quillgate as run } from '../support/command-line.js';
import { startTestDatabase } from '../support/database.js';
import { makeFolder, plant, readTree } from '../support/folders.js';

const server = await startTestDatabase();
afterAll(server.stop);
const launcher = resolve('bin/quillgate');

const quillgate = (args: string[]) => run(args, { DATABASE_URL: server.url });

interface Machine {
  /** The output of `node --version`; undefined: there is no Node. */
  node: string | undefined;
  /** As `uname -sm` names it. */
  system: string;
  isInstalled: boolean;
}

/** Runs a copy of the launcher on such a machine, with or without packages beside it; none of them is Node. */
function launchOn({ node, system, isInstalled }: Machine, args = ['api']): Promise<Ran> {
  const folder = plant({
    'bin/node': `#!/bin/sh\n${node === undefined ? 'exit 127' : `echo ${node}`}\n`,
    'bin/uname': `#!/bin/sh\necho ${system}\n`,
    'copy/bin/quillgate': readFileSync(launcher, 'utf8'),
    'copy/dev/build.mjs': '',
    ...(isInstalled && { 'copy/node_modules/.package-lock.json': '{}' }),
  });
  for (const name of ['node', 'uname']) chmodSync(join(folder, 'bin', name), 0o755);
  const env = { PATH: `${join(folder, 'bin')}:/usr/bin:/bin` };
  return new Promise((done) => {
    execFile('sh', [join(folder, 'copy/bin/quillgate'), ...args], { env }, (error, stdout, stderr) => {
      done({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

describe('quillgate', () => {
  it('the commands of users -> create, list, remove, and say what is wrong', async () => {
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

  it('a command below another with the same option -> its own option is taken', async () => {
    for (const args of [['usage'], ['usage', 'reprice']])
      expect(await quillgate([...args, '--from', 'canary'])).toMatchObject({
        ...{ code: 1, stderr: '--from must be a day such as 2026-12-01.\n' },
      });
    const { stdout } = await quillgate(['usage', 'reprice', '--from', '2026-12-01']);
    expect(stdout).toBe('0 calls have a cost now.\n');
  });

  it('posts that are imported -> come out, and in again without a change', async () => {
    const folder = plant({ 'a/b.md': '---\ntitle: c\n---\ntext' });
    expect(await quillgate(['posts', 'import', folder])).toEqual({
      code: 0,
      stdout: '',
      stderr: '1 created, 0 changed, 0 unchanged\n',
    });
    const exported = makeFolder();
    const { code, stderr } = await quillgate(['posts', 'export', exported]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: `1 post exported to ${exported}.\n` });
    const written = readTree(exported);
    expect(Object.keys(written)).toEqual(['a/b.md']);
    expect((await quillgate(['posts', 'import', exported])).stderr).toBe(
      '0 created, 0 changed, 1 unchanged\n',
    );
    expect((await quillgate(['posts', 'export', exported])).code).toBe(1);
    expect((await quillgate(['posts', 'export', '--force', exported])).code).toBe(0);
    expect(readTree(exported)).toEqual(written);
  });

  const linux = 'Linux x86_64';
  it.each([
    [linux, 'v18.20.4', false, 'Quillgate needs Node 20 or newer, this is 18.20.'],
    ['Linux aarch64', 'v18.20.4', false, 'Quillgate needs Node 20 or newer, this is 18.20.'],
    ['Linux riscv64', 'v22.11.0', false, 'Quillgate needs Node 24 or newer, this is 22.11.'],
    ['Darwin arm64', 'v20.19.5', false, 'Quillgate needs Node 24 or newer, this is 20.19.'],
    [linux, 'v20.19.5', true, 'Quillgate needs Node 24 or newer, this is 20.19.'],
    [linux, undefined, true, 'Quillgate needs Node 24 or newer, this machine has none.'],
    [linux, 'v24.0.0', false, 'Run npm ci first.'],
    ['Darwin arm64', 'v24.0.0', false, 'Run npm ci first.'],
  ])('%s, %s, installed: %s -> says in a line what it needs', async (system, node, isInstalled, words) => {
    for (const args of [['api'], ['build']])
      expect(await launchOn({ node, system, isInstalled }, args)).toEqual({
        ...{ code: 1, stdout: '', stderr: `${words}\n` },
      });
  });

  it.each(['v24.0.0', 'v26.1.0'])('a Node that is new enough, %s -> goes on with it', async (node) => {
    const machine = { node, system: linux, isInstalled: true };
    expect((await launchOn(machine)).stderr).toMatch(/^There is no api in dist/);
    expect(await launchOn(machine, ['build'])).toEqual({ code: 0, stdout: `${node}\n`, stderr: '' });
  });
});
