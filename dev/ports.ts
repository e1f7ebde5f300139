import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type Config, ConfigError } from '../shared/config/config.js';

/** The programs of a killed start stop within this time. */
const stopMs = 8000;
const checkEveryMs = 100;
/** The addresses that `localhost` may have for a client. */
const loopbacks = ['127.0.0.1', '::1'];

/**
 * Throws `ConfigError` unless all configured ports are free. Waits for a port that is taken, because the programs of a
 * killed start need a moment to stop.
 */
export async function refuseUnusablePorts(
  { PORT, METRICS_PORT, WORKER_PORT, SIMULATOR_PORT }: Config,
  { withSimulator, withinMs = stopMs }: { withSimulator: boolean; withinMs?: number },
): Promise<void> {
  const configured = {
    PORT,
    ...(METRICS_PORT !== undefined && { METRICS_PORT }),
    WORKER_PORT,
    ...(withSimulator && { SIMULATOR_PORT }),
  };
  const ports = new Map(Object.entries(configured).filter(([, port]) => port !== 0));
  if (new Set(ports.values()).size < ports.size)
    throw new ConfigError([`${[...ports.keys()].join(', ')}: must not be the same`]);
  const taken = await takenPorts(ports, withinMs);
  if (taken.length > 0) {
    throw new ConfigError(
      taken.map((port) => `${port}: something else listens there; stop it or set another port`),
    );
  }
}

async function takenPorts(ports: Map<string, number>, withinMs: number): Promise<string[]> {
  const until = Date.now() + withinMs;
  for (;;) {
    const taken: string[] = [];
    for (const [name, port] of ports) if (await isTaken(port)) taken.push(`${name}=${port}`);
    if (taken.length === 0 || Date.now() > until) return taken;
    await delay(checkEveryMs);
  }
}

const isTaken = async (port: number): Promise<boolean> =>
  (await Promise.all(loopbacks.map((host) => answers(port, host)))).includes(true);

async function answers(port: number, host: string): Promise<boolean> {
  const socket = connect(port, host);
  const connected = once(socket, 'connect').then(() => true);
  return connected.catch(() => false).finally(() => socket.destroy());
}
