import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { refuseUnusablePorts } from '../../dev/ports.js';
import { parseConfig } from '../../shared/config/config.js';

const check = (ports: Record<string, string>, withSimulator = true) =>
  refuseUnusablePorts(parseConfig({ PORT: '0', WORKER_PORT: '0', SIMULATOR_PORT: '0', ...ports }, 'start'), {
    withSimulator,
    withinMs: 0,
  });

/** A port that something listens on until the test ends. */
async function takenPort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return String((server.address() as AddressInfo).port);
}

describe('the ports of a start', () => {
  it('that something else listens on -> are refused by their names alone', async () => {
    const port = await takenPort();
    const words = `WORKER_PORT=${port}: something else listens there; stop it or set another port`;
    await expect(check({ WORKER_PORT: port })).rejects.toMatchObject({ problems: [words] });
    await expect(check({ SIMULATOR_PORT: port })).rejects.toThrow(`SIMULATOR_PORT=${port}`);
  });

  it('that are the same -> are refused', async () => {
    const port = await takenPort();
    const problems = ['PORT, WORKER_PORT: must not be the same'];
    await expect(check({ PORT: port, WORKER_PORT: port })).rejects.toMatchObject({ problems });
  });

  it('that are any free ones, or of a simulator that does not start -> are taken', async () => {
    await check({});
    await check({ SIMULATOR_PORT: await takenPort() }, false);
  });
});
