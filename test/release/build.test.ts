import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { withLock } from '../../dev/lock.js';
import { makeFolder } from '../support/folders.js';
import { patience } from '../support/patience.js';

const root = resolve(import.meta.dirname, '../..');
const checkout = makeFolder(afterAll);
const building = 'Building (later starts skip this)\n';

describe('the build', () => {
  it('of several lines of a Procfile that start at once -> is done once', { timeout: 600_000 }, async () => {
    copySources();
    const compiled = installWithCountingCompiler();
    const quillgate = (...args: string[]) =>
      promisify(execFile)(join(checkout, 'bin/quillgate'), args, { cwd: checkout });
    const started = await Promise.all([1, 2, 3].map(() => quillgate('config', '--env-example')));
    expect(started.map(({ stdout }) => stdout.includes('DATABASE_URL'))).toEqual([true, true, true]);
    expect(readFileSync(compiled, 'utf8')).toBe('compiled\n');
    for (const { stderr } of started) expect(stderr).toBe(building);
    expect(readdirSync(checkout).filter((name) => name.startsWith('dist'))).toEqual(['dist']);
    // With nothing to do it does not wait for another build: this lock is not given back before it has ended.
    await withLock(join(checkout, 'node_modules/.build.lock'), async () => {
      const build = [join(checkout, 'dev/build.mjs')];
      const { stderr } = await promisify(execFile)(process.execPath, build);
      expect(stderr).toBe('');
    });
  });

  it('that is interrupted -> says so, and leaves no tool running', async () => {
    const started = installGeneratorWithoutEnd();
    rmSync(join(checkout, 'dist'), { recursive: true });
    const child = spawn(process.execPath, [join(checkout, 'dev/build.mjs')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const said = text(child.stderr);
    const ended = once(child, 'exit');
    const generator = await vi.waitFor(() => Number(readFileSync(started, 'utf8')), patience);
    child.kill('SIGINT');
    expect(await ended).toEqual([null, 'SIGINT']);
    expect(await said).toBe(`${building}Stopped before it was built; the next start builds it.\n`);
    await vi.waitFor(() => expect(() => process.kill(generator, 0)).toThrow('ESRCH'), patience);
  });
});

/** A checkout in which nothing was built yet. */
function copySources(): void {
  const folders = ['api', 'bin', 'cli', 'console', 'db', 'dev', 'shared', 'test', 'workers'];
  const files = ['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json', 'tsoa.json'];
  for (const part of [...folders, ...files])
    cpSync(join(root, part), join(checkout, part), {
      recursive: true,
      filter: (path) => !path.includes('generated'),
    });
}

/** Dependencies whose compiler writes a line into the file that is given back, and then compiles. */
function installWithCountingCompiler(): string {
  const from = join(root, 'node_modules');
  const to = join(checkout, 'node_modules');
  const compiled = join(checkout, 'compiled.txt');
  mkdirSync(join(to, '.bin'), { recursive: true });
  const linked = [
    ...readdirSync(from).filter((name) => !name.startsWith('.')),
    ...readdirSync(join(from, '.bin')).map((name) => `.bin/${name}`),
  ];
  for (const name of linked.filter((one) => one !== '.bin/tsc'))
    symlinkSync(join(from, name), join(to, name));
  const compiler = `#!/bin/sh\necho compiled >>${compiled}\nexec ${join(from, '.bin/tsc')} "$@"\n`;
  writeFileSync(join(to, '.bin/tsc'), compiler, { mode: 0o755 });
  return compiled;
}

/** Replaces the first tool of the build by one that never ends, which writes its process id into the returned file. */
function installGeneratorWithoutEnd(): string {
  const tool = join(checkout, 'node_modules/.bin/tsoa');
  const started = join(checkout, 'started.txt');
  // It is a link to the project's own.
  rmSync(tool);
  writeFileSync(
    tool,
    `#!/bin/sh\necho $$ >${started}.new && mv ${started}.new ${started}\nexec sleep 600\n`,
    {
      mode: 0o755,
    },
  );
  return started;
}
