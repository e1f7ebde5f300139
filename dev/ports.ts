import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const checkEveryMs = 100;

/**
 * Waits until nobody listens on these loopback ports, because the programs of a start that was killed need a moment
 * to notice and stop. Resolves with the names of the ports still taken after `patienceMs`.
 */
export async function takenPorts(ports: Record<string, number>, patienceMs: number): Promise<string[]> {
  const until = Date.now() + patienceMs;
  for (;;) {
    const taken: string[] = [];
    for (const [name, port] of Object.entries(ports)) {
      if (port !== 0 && (await isTaken(port))) taken.push(`${name}=${port}`);
    }
    if (taken.length === 0 || Date.now() > until) return taken;
    await delay(checkEveryMs);
  }
}

const isTaken = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const settle = (taken: boolean) => {
      socket.destroy();
      resolve(taken);
    };
    socket.once('connect', () => settle(true)).once('error', () => settle(false));
  });
