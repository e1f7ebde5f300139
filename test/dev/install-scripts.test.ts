import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';

interface Manifest {
  allowScripts: Record<string, boolean>;
}
interface Lockfile {
  packages: Record<string, { hasInstallScript?: boolean }>;
}
const read = <T>(file: string): T => JSON.parse(readFileSync(file, 'utf8')) as T;

describe('npm ci', () => {
  it('has been told of every package with an install script whether it may run', () => {
    const { packages } = read<Lockfile>('package-lock.json');
    const withScript = Object.keys(packages)
      .filter((path) => path !== '' && packages[path]?.hasInstallScript)
      .map((path) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length));
    expect(withScript).toContain('@scarf/scarf');
    expect(Object.keys(read<Manifest>('package.json').allowScripts)).toEqual(
      expect.arrayContaining(withScript),
    );
  });

  // npm before 11 does not know allowScripts, and runs the script.
  it('tells nobody of an installation, also where npm runs every script', async () => {
    const contacts: string[] = [];
    const listener = createServer((socket) => {
      contacts.push('connected');
      socket.destroy();
    });
    await once(listener.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void listener.close());
    const { stdout, stderr } = await promisify(execFile)(
      'node',
      [resolve('node_modules/@scarf/scarf/report.js')],
      {
        cwd: resolve('node_modules/@scarf/scarf'),
        env: {
          PATH: process.env.PATH,
          INIT_CWD: resolve('.'),
          SCARF_LOCAL_PORT: String((listener.address() as AddressInfo).port),
          SCARF_VERBOSE: 'true',
        },
      },
    );
    expect(stdout).not.toContain('Scarf payload');
    expect(contacts).toEqual([]);
    expect(stdout + stderr).toContain('disabled via a package.json');
  });
});
