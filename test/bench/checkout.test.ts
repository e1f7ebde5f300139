import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { Lifecycle } from '../../shared/runtime/lifecycle.js';
import { createRecordingLog } from '../support/recording-log.js';
import { checkOut } from './checkout.js';

it('the commit before -> its files are built with the packages that are there, and the repository stays as it was', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'bench-checkout-'));
  const lifecycle = new Lifecycle(createRecordingLog().log);
  lifecycle.opened('folder', dir, () => rmSync(dir, { recursive: true, force: true }));
  onTestFinished(() => lifecycle.close());
  const repository = join(dir, 'repository');
  mkdirSync(join(repository, 'node_modules'), { recursive: true });
  const git = (...args: string[]) => execFileSync('git', args, { cwd: repository, encoding: 'utf8' });
  const write = (name: string, text: string) => writeFileSync(join(repository, name), text);
  const commit = (version: string) => {
    const scripts = { build: `echo ${version} $(cat node_modules/installed) > built` };
    write('package.json', JSON.stringify({ name: 'tiny', scripts }));
    git('add', '--all');
    git('-c', 'user.name=test', '-c', 'user.email=test@example.com', 'commit', '--quiet', '-m', version);
  };
  const state = () => git('status', '--porcelain', '--branch') + git('worktree', 'list');
  git('init', '--quiet');
  write('.gitignore', 'node_modules\n');
  write('node_modules/installed', 'here');
  write('package-lock.json', '{}');
  commit('older');
  commit('newer');
  write('package.json', 'unfinished');
  const before = state();
  const { root } = await checkOut('HEAD~1', { dir, lifecycle }, repository);
  expect(readFileSync(join(root, 'built'), 'utf8')).toBe('older here\n');
  expect(state()).toBe(before);
  const refused = checkOut('--all', { dir, lifecycle }, repository);
  await expect(refused).rejects.toThrow(/^--against: git finds no commit --all in this repository$/);
});
