import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { makeFolder } from '../../support/folders.js';

const script = resolve('dev/release/licenses.mjs');
let project: string;
beforeEach(() => {
  project = makeFolder();
});

describe('the licences', () => {
  it('lists what the product runs with or bundles, and every text once', async () => {
    lock({
      'node_modules/preact': { version: '1.0.0', license: 'MIT', dev: true },
      'node_modules/one': { version: '1.0.0', license: 'MIT' },
      'node_modules/one/node_modules/two': { version: '2.0.0', license: 'MIT' },
      'node_modules/tool': { version: '3.0.0', license: 'SSPL-1.0', dev: true },
    });
    for (const path of ['one', 'one/node_modules/two']) {
      mkdirSync(join(project, 'node_modules', path), { recursive: true });
      writeFileSync(join(project, 'node_modules', path, 'LICENSE'), 'Keep this text.');
    }
    expect(await licenses()).toEqual({ code: 0, stderr: '' });
    const written = readFileSync(join(project, 'THIRD-PARTY-LICENSES.md'), 'utf8');
    expect(written).toContain('| one | 1.0.0 | MIT |\n| preact | 1.0.0 | MIT |\n| two | 2.0.0 | MIT |\n\n');
    expect(written).toMatch(/### one 1\.0\.0, two 2\.0\.0\n\n {4}Keep this text\.\n$/);
  });

  it.each([['SSPL-1.0'], [undefined]])('refuses %s, which is not on the list', async (license) => {
    lock({ 'node_modules/one': { version: '1.0.0', license } });
    const said = `one 1.0.0: the licence "${license ?? 'none'}" is not on the list in dev/release/licenses.mjs.\n`;
    expect(await licenses('--check')).toEqual({ code: 1, stderr: said });
  });
});

function lock(packages: Record<string, object>): void {
  writeFileSync(join(project, 'package-lock.json'), JSON.stringify({ packages: { '': {}, ...packages } }));
}

const licenses = (...options: string[]) =>
  new Promise<{ code: number; stderr: string }>((resolve) => {
    execFile(process.execPath, [script, ...options, project], (error, _stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stderr }),
    );
  });
