import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { quillgate } from '../support/command-line.js';

const somewhere = {
  HOST: '127.0.0.1',
  DATABASE_URL: 'postgres://user:password@127.0.0.1:1/x',
  REDIS_URL: 'redis://127.0.0.1:1',
  CHAT_USERNAME: 'tester',
  CHAT_PASSWORD: 'not a secret in a test',
  OPENAI_API_KEY: 'unused',
};
const free = { PORT: '0', WORKER_PORT: '0' };

describe('a port that something else listens on', () => {
  const server = createServer();
  beforeAll(async () => void (await once(server.listen(0, '127.0.0.1'), 'listening')));
  afterAll(() => void server.close());

  it.each([
    ['api', 'PORT'],
    ['api', 'METRICS_PORT'],
    ['worker', 'WORKER_PORT'],
  ])(
    '%s -> does not start, and names %s and the port, and no place in the code',
    async (program, variable) => {
      const { port } = server.address() as AddressInfo;
      const ran = await quillgate([program], { ...somewhere, ...free, [variable]: String(port) });
      expect(ran.code).toBe(1);
      expect(ran.stderr).toBe(
        `${variable}=${port}: something else listens there; stop it or set another port\n`,
      );
    },
  );

  it.each(['api', 'worker'])(
    'an address that the machine does not have -> %s names HOST',
    async (program) => {
      // Of the network for documentation, which no machine has.
      const { code, stderr } = await quillgate([program], { ...somewhere, ...free, HOST: '192.0.2.1' });
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: 'HOST=192.0.2.1: this machine has no such address\n',
      });
    },
  );
});
