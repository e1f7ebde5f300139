import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { checkHealth } from '../../../cli/commands/health.js';
import { freePort } from '../../../dev/free-port.js';
import { printedBy } from '../output.js';

const ready = { '/livez': 200, '/readyz': 200 };
const draining = { '/livez': 200, '/readyz': 503 };

describe('checkHealth', () => {
  it.each(['PORT', 'WORKER_PORT'])('a program that listens at %s -> what it says', async (name) => {
    expect(await healthOf(name, ready)).toBe('/livez says 200\n');
  });

  it('a program that is alive and not ready -> fails only where ready is asked for', async () => {
    expect(await healthOf('PORT', draining)).toBe('/livez says 200\n');
    await expect(healthOf('PORT', draining, { ready: true })).rejects.toThrow('503 /readyz says 503');
  });

  it('no program -> fails, and names the variables', async () => {
    await expect(checkHealth(await unusedPorts(), {})).rejects.toThrow(
      /^No program answers at ports \d+ \(PORT\) and \d+ \(WORKER_PORT\)\.$/,
    );
  });
});

/** Runs the command beside a program that answers with these statuses at the port of the variable. */
async function healthOf(variable: string, statuses: Record<string, number>, options = {}) {
  const server = createServer(({ url = '' }, response) => {
    const status = statuses[url] ?? 404;
    response.writeHead(status).end(`${url} says ${status}`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const environment = { ...(await unusedPorts()), [variable]: `${port}` };
  return (await printedBy(() => checkHealth(environment, options))).stdout;
}

async function unusedPorts() {
  return { HOST: '127.0.0.1', PORT: `${await freePort()}`, WORKER_PORT: `${await freePort()}` };
}
