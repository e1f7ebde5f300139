import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../../dev/free-port.js';
import { quillgate } from '../../support/command-line.js';

const ready = { '/livez': 200, '/readyz': 200 };
const draining = { '/livez': 200, '/readyz': 503 };

describe('quillgate health', () => {
  it.each(['PORT', 'WORKER_PORT'])('asks the program that listens at %s', async (name) => {
    expect(await healthOf(name, ready, [])).toMatchObject({ code: 0, stdout: '/livez says 200\n' });
  });

  it('tells alive from ready', async () => {
    expect(await healthOf('PORT', draining, [])).toMatchObject({ code: 0 });
    const { code, stderr } = await healthOf('PORT', draining, ['--ready']);
    expect({ code, stderr }).toEqual({ code: 1, stderr: '503 /readyz says 503\n' });
  });

  it('fails where no program listens, and names the variables', async () => {
    const { code, stderr } = await quillgate(['health'], await unusedPorts());
    expect(code).toBe(1);
    expect(stderr).toMatch(/^No program answers at ports \d+ \(PORT\) and \d+ \(WORKER_PORT\)\.\n$/);
  });
});

/** Runs the command beside a program that answers with these statuses at the port of the variable. */
async function healthOf(variable: string, statuses: Record<string, number>, options: string[]) {
  const server = createServer(({ url = '' }, response) => {
    const status = statuses[url] ?? 404;
    response.writeHead(status).end(`${url} says ${status}`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return quillgate(['health', ...options], { ...(await unusedPorts()), [variable]: `${port}` });
}

async function unusedPorts() {
  return { HOST: '127.0.0.1', PORT: `${await freePort()}`, WORKER_PORT: `${await freePort()}` };
}
