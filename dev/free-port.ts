import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below what systems take for outgoing connections, one of which could have the port before it is listened on. */
const [first, last] = [15_000, 29_999];
const maxTries = 100;

/** A port of the loopback address without a listener at this moment. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < maxTries; tries += 1) {
    const port = randomInt(first, last + 1);
    if (await canListen(port)) return port;
  }
  throw new Error('no port to listen on');
}

async function canListen(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
