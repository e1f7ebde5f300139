import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { docker, tryDocker } from './support/docker.js';

const image = inject('image');
const baseImage = 'node:24-bookworm-slim';
/** The promises of docs/decisions/0010-containers.md. */
const maxMegabytesAdded = 83;
const nowhere = 'redis://redis.invalid:6379';

interface Manifest {
  optionalDependencies: Record<string, string>;
}
interface Lockfile {
  packages: Record<string, { dev?: boolean; optional?: boolean }>;
}
const read = <T>(file: string): T => JSON.parse(readFileSync(file, 'utf8')) as T;

/** Prints what a script finds in a container of the image. */
const look = (script: string, ...options: string[]) =>
  docker('run', '--rm', '--network', 'none', ...options, '--entrypoint', 'sh', image, '-c', script);

/** Starts a container that is gone at the end of the test. */
async function start(...args: string[]): Promise<string> {
  const name = `quillgate-test-${randomUUID().slice(0, 8)}`;
  onTestFinished(async () => void (await docker('rm', '--force', '--volumes', name)));
  await docker('run', '--detach', '--read-only', '--network', 'none', '--name', name, ...args);
  return name;
}

const logged = (container: string, text: string) =>
  vi.waitFor(
    async () => {
      const { stdout, stderr } = await tryDocker(['logs', container]);
      expect(stdout + stderr).toContain(text);
    },
    { timeout: 15_000, interval: 100 },
  );

/** Sends SIGTERM and gives the exit code; 137 of a process that had to be killed. */
async function stop(container: string): Promise<number> {
  await docker('stop', '--time', '10', container);
  return Number(await docker('inspect', '--format', '{{.State.ExitCode}}', container));
}

describe('the image', () => {
  it('is run by a user who is not root and owns nothing in it', async () => {
    expect(await docker('inspect', '--format', '{{.Config.User}}', image)).toBe('1000:1000');
    expect(await look('id -u; id -g; find /app ! -user root -o -writable ! -type l | head')).toBe(
      '1000\n1000',
    );
  });

  it('holds no development or optional dependency, and of the programs all but npm start', async () => {
    const { packages } = read<Lockfile>('package-lock.json');
    const left = Object.keys(packages).filter((path) => packages[path]?.dev || packages[path]?.optional);
    const optional = Object.keys(read<Manifest>('package.json').optionalDependencies);
    expect(left).toEqual(expect.arrayContaining(['node_modules/vitest', `node_modules/${optional[0]}`]));
    const found = await look('find node_modules -name package.json; ls dist dist/programs');
    const folders = new Set(found.split('\n').map((path) => path.replace(/\/package\.json$/, '')));
    expect(left.filter((path) => folders.has(path))).toEqual([]);
    expect([...folders]).toEqual(expect.arrayContaining(['db', 'api.js', 'worker.js', 'simulator.js']));
    expect([...folders].filter((name) => ['start.js', 'test', 'dev'].includes(name))).toEqual([]);
  });

  it(`adds less than ${maxMegabytesAdded} MB to ${baseImage}`, async () => {
    const [whole = 0, base = 0] = await Promise.all(
      [image, baseImage].map(async (name) => Number(await docker('inspect', '--format', '{{.Size}}', name))),
    );
    process.stdout.write(`The image adds ${((whole - base) / 1e6).toFixed(1)} MB to ${baseImage}.\n`);
    expect((whole - base) / 1e6).toBeLessThan(maxMegabytesAdded);
  });

  it.each([
    ['api', 'DATABASE_URL'],
    ['worker', 'REDIS_URL or DATABASE_URL'],
    ['migrate', 'DATABASE_URL'],
  ])('ends %s without configuration, and names %s', async (program, variable) => {
    const { code, stderr } = await tryDocker(['run', '--rm', '--read-only', image, program]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(`${variable}: `) });
  });

  it('has its commands on the PATH', async () => {
    expect(await look('cd /tmp && quillgate --help')).toContain('Usage: quillgate');
  });

  it('says what it is not for', async () => {
    const { code, stderr } = await tryDocker(['run', '--rm', '--read-only', image, 'start']);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('no npm start') });
  });

  it('is healthy while it waits for its store, though not ready, and stops with 0', async () => {
    expect(await docker('inspect', '--format', '{{.Config.Healthcheck.Test}}', image)).toContain(
      '/app/bin/quillgate health',
    );
    const worker = await start('-e', `REDIS_URL=${nowhere}`, '-e', 'OPENAI_API_KEY=x', image, 'worker');
    await logged(worker, 'waiting for the queue store');
    const health = (...options: string[]) =>
      tryDocker(['exec', worker, 'bin/quillgate', 'health', ...options]);
    const [alive, ready] = await Promise.all([health(), health('--ready')]);
    expect(alive).toMatchObject({ code: 0, stdout: '{"status":"ok"}\n' });
    expect(ready).toMatchObject({ code: 1, stderr: expect.stringContaining('503') });
    expect(await stop(worker)).toBe(0);
  });

  it('ends a command that waits on SIGTERM, though it is process 1', async () => {
    const silent = `require('net').createServer(() => console.log('asked')).listen(5432, '127.0.0.1')`;
    const script = `node -e "${silent}" & exec bin/quillgate migrate`;
    const url = 'DATABASE_URL=postgres://nobody@127.0.0.1:5432/none';
    const migration = await start('-e', url, '--entrypoint', 'sh', image, '-c', script);
    await logged(migration, 'asked');
    expect(await stop(migration)).toBe(143);
  });
});
