import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ChildProgram, startChild } from '../../dev/child-program.js';
import { bundled } from '../../dev/release/bundled.js';
import { startSimulator } from '../../dev/simulator/server.js';
import { providerIds } from '../../shared/contracts/contract.js';
import { startEmptyDatabase } from '../support/database.js';
import { authorization, password, username } from '../support/deployment.js';
import { makeFolder } from '../support/folders.js';
import { simulatorEnvironment } from '../support/simulator-environment.js';

const run = promisify(execFile);
const folder = makeFolder(afterAll);
const installed = join(folder, 'node_modules', 'quillgate');
const env = { PATH: process.env.PATH, HOME: process.env.HOME };
let packed: string[];

beforeAll(async () => {
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder]);
  const [{ filename, files }] = JSON.parse(stdout);
  packed = files.map(({ path }: { path: string }) => path);
  mkdirSync(installed, { recursive: true });
  await run('tar', ['-xzf', join(folder, filename), '-C', installed, '--strip-components=1']);
  linkProductionDependencies();
});

describe('the package', () => {
  it('-> holds what runs and what explains it, and nothing else', () => {
    const inFolders =
      /^(?:docs\/.+\.(?:md|svg|png)|dist\/programs\/[\w.-]+\.js|dist\/console\/assets\/index-[\w-]+\.(?:css|js)|dist\/db\/migrations\/.+)$/;
    expect(packed.filter((path) => !inFolders.test(path)).sort()).toEqual(
      [
        '.env.example',
        'CHANGELOG.md',
        'LICENSE',
        'Procfile',
        'README.md',
        'THIRD-PARTY-LICENSES.md',
        'bin/quillgate',
        'dist/.inputs.sha256',
        'dist/console/index.html',
        'npm-shrinkwrap.json',
        'package.json',
        'sbom.json',
      ].sort(),
    );
  });

  it('-> names in its bill of materials what the lockfile has for production and the console is made of', () => {
    const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lockfile;
    const all = Object.entries(packages).map(([path, { dev }]) => ({
      name: path.split('node_modules/').at(-1) ?? '',
      dev,
    }));
    const names = all.filter(({ name, dev }) => name && (!dev || bundled.has(name))).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining([...bundled]));
    const bom = JSON.parse(readFileSync(join(installed, 'sbom.json'), 'utf8'));
    const listed: { name: string }[] = bom.components;
    expect(listed.map(({ name }) => name).sort()).toEqual(names.sort());
    expect(bom).not.toHaveProperty('serialNumber');
  });

  it('that is installed -> runs without sources and development dependencies', async () => {
    const npx = async (...args: string[]) =>
      (await run('npx', ['quillgate', ...args], { cwd: folder, env })).stdout;
    expect(await npx('--help')).toContain('Usage: quillgate');
    expect(await npx('config', '--env-example')).toBe(readFileSync('.env.example', 'utf8'));
    expect(await askInstalled()).toBe(200);
  });
});

interface Lockfile {
  packages: Record<string, { dev?: boolean }>;
}

/** As an installation without development dependencies has them, but from here instead of from the registry. */
function linkProductionDependencies(): void {
  const { packages } = JSON.parse(readFileSync('node_modules/.package-lock.json', 'utf8')) as Lockfile;
  const topmost = Object.entries(packages).filter(
    ([path, { dev }]) => !dev && path.lastIndexOf('node_modules/') === 0,
  );
  for (const [path] of topmost) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    symlinkSync(resolve(path), join(folder, path));
  }
  mkdirSync(join(folder, 'node_modules/.bin'));
  symlinkSync('../quillgate/bin/quillgate', join(folder, 'node_modules/.bin/quillgate'));
}

/** The status of a chat through the installed programs. */
async function askInstalled(): Promise<number> {
  const database = await startEmptyDatabase();
  const simulator = await startSimulator({ port: 0 });
  const environment = {
    ...env,
    HOST: '127.0.0.1',
    PORT: '0',
    WORKER_PORT: '0',
    DATABASE_URL: database.url,
    CHAT_USERNAME: username,
    CHAT_PASSWORD: password,
    ...simulatorEnvironment([...providerIds], simulator.url),
  };
  const command = join(folder, 'node_modules/.bin/quillgate');
  const started: ChildProgram[] = [];
  const start = async (name: string) => {
    const logFile = join(folder, `${name}.log`);
    const child = await startChild({ name, command, args: [name], environment, cwd: folder, logFile });
    started.push(child);
    await child.ready;
    return child;
  };
  try {
    await run(command, ['migrate'], { cwd: folder, env: environment });
    const [api] = await Promise.all([start('api'), start('worker')]);
    const response = await fetch(`http://127.0.0.1:${api.port}/chat`, {
      method: 'POST',
      headers: { Authorization: authorization, 'Content-Type': 'application/json', 'X-LLM': 'openai' },
      body: JSON.stringify({ messages: [{ content: 'Hello!' }] }),
    });
    await response.json();
    return response.status;
  } finally {
    await Promise.all(started.map((child) => child.stop({ graceMs: 5000 })));
    await simulator.close();
    await database.stop();
  }
}
