import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { runToEnd } from '../run-to-end.js';
import { checkOut, findCommit } from './checkout.js';

let folder: string;
let repository: string;
let dir: string;
let lifecycle: Lifecycle;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bench-checkout-'));
  repository = join(folder, 'repository');
  dir = join(folder, 'temporary');
  for (const path of [repository, dir, join(repository, 'node_modules')]) mkdirSync(path);
  lifecycle = new Lifecycle(createRecordingLog().log);
  git('init', '--quiet');
  writeFileSync(join(repository, '.gitignore'), 'node_modules\nbuilt\n');
  writeFileSync(join(repository, 'node_modules', 'installed'), 'here');
  writeFileSync(join(repository, 'package.json'), JSON.stringify(description));
  writeFileSync(join(repository, 'package-lock.json'), JSON.stringify(lockfile));
});

afterEach(async () => {
  await lifecycle.close();
  rmSync(folder, { recursive: true, force: true });
});

const description = {
  name: 'tiny',
  version: '1.0.0',
  scripts: { build: 'cat version node_modules/installed > built' },
};
const lockfile = { ...description, lockfileVersion: 3, packages: { '': { name: 'tiny', version: '1.0.0' } } };

const git = (...args: string[]) => execFileSync('git', args, { cwd: repository, encoding: 'utf8' });

function commit(version: string): void {
  writeFileSync(join(repository, 'version'), version);
  git('add', '--all');
  git('-c', 'user.name=test', '-c', 'user.email=test@example.com', 'commit', '--quiet', '-m', version);
}

const deps = () => ({ dir, lifecycle, repository, onStep: () => undefined });

describe('checkOut', () => {
  it('builds the files of the commit with the packages that are there, and leaves the repository as it was', async () => {
    commit('older ');
    commit('newer ');
    writeFileSync(join(repository, 'version'), 'unfinished ');
    const before = git('status', '--porcelain', '--branch') + git('worktree', 'list');
    const { root, packages } = await checkOut(await findCommit('HEAD~1', deps()), deps());
    expect(readFileSync(join(root, 'built'), 'utf8')).toBe('older here');
    expect(packages).toMatch(/^the candidate's/);
    expect(git('status', '--porcelain', '--branch') + git('worktree', 'list')).toBe(before);
  });

  it('installs the packages of a commit with another lockfile', async () => {
    commit('older ');
    writeFileSync(join(repository, 'package-lock.json'), `${JSON.stringify(lockfile)}\n`);
    commit('newer ');
    const steps: string[] = [];
    const onStep = (step: string) => {
      steps.push(step);
      // The tiny project has no packages that npm could install.
      if (step.startsWith('npm run')) {
        mkdirSync(join(dir, 'checkout', 'node_modules'), { recursive: true });
        writeFileSync(join(dir, 'checkout', 'node_modules', 'installed'), 'there');
      }
    };
    const { root, packages } = await checkOut(await findCommit('HEAD~1', deps()), { ...deps(), onStep });
    expect(steps.map((step) => step.split(' ')[1])).toEqual(['ci', 'run']);
    expect(readFileSync(join(root, 'built'), 'utf8')).toBe('older there');
    expect(packages).toBe('its own, by npm ci');
  });

  it('says how a build failed', async () => {
    writeFileSync(
      join(repository, 'package.json'),
      JSON.stringify({ ...description, scripts: { build: 'echo no such beam >&2; false' } }),
    );
    commit('broken');
    await expect(checkOut('HEAD', deps())).rejects.toThrow(/^npm run --silent build failed.*no such beam$/s);
  });
});

describe('findCommit', () => {
  it('gives the full name', async () => {
    commit('only');
    expect(await findCommit('HEAD', deps())).toBe(git('rev-parse', 'HEAD').trim());
  });

  it.each(['nosuch', '--all', 'HEAD:version'])('refuses %s in one sentence', async (name) => {
    commit('only');
    await expect(findCommit(name, deps())).rejects.toThrow(
      new Error(`--against: git finds no commit ${name} in this repository`),
    );
  });
});

describe('runToEnd', () => {
  it('is stopped with all that it has started when the lifecycle closes', async () => {
    // Its output is at an end only when both have ended.
    const args = ['-c', 'sleep 1000 & touch started; wait'];
    const running = runToEnd('sh', args, { cwd: dir, environment: process.env, lifecycle });
    const refused = expect(running).rejects.toThrow(/^sh /);
    await vi.waitFor(() => expect(existsSync(join(dir, 'started'))).toBe(true));
    await lifecycle.close();
    await refused;
  });
});
