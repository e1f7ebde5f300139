import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { freePort } from '../../dev/free-port.js';

/** A TCP proxy in front of a server that can stop forwarding without closing, as if the server were frozen. */
export interface Wire {
  readonly port: number;
  /** How many pieces of data have been sent to the server so far. */
  sent(): number;
  /** Holds back everything in both directions; connecting still works. */
  freeze(): void;
  /** Holds back the server's answers, but forwards what is sent to it. */
  holdAnswers(): void;
  /** Forwards what was held back, and everything after it. */
  thaw(): void;
  /**
   * Drops everything on the existing connections, in both directions and without either end noticing, as when a NAT has
   * forgotten them. New connections work.
   */
  swallow(): void;
  /** Closes the port and all connections, as if the server had ended. */
  cut(): Promise<void>;
  /** Listens again on the same port. */
  mend(): Promise<void>;
  close(): Promise<void>;
}

/** Opens a wire to the server of a URL, and returns the URL that leads through it. */
export async function openWireTo(url: string): Promise<Wire & { readonly url: string }> {
  const { hostname, port } = new URL(url);
  const wire = await openWire(Number(port), hostname);
  const through = new URL(url);
  through.host = `127.0.0.1:${wire.port}`;
  return { ...wire, url: through.href };
}

/** Opens a wire to a port, by default of the loopback address. */
export async function openWire(target: number, host = '127.0.0.1'): Promise<Wire> {
  const sockets = new Set<Socket>();
  const answering = new Set<Socket>();
  const dead = new WeakSet<Socket>();
  let held: ReadonlySet<Socket> = new Set();
  let sent = 0;
  const join = (from: Socket, to: Socket) => {
    sockets.add(from);
    const end = () => {
      if (!dead.has(from)) to.destroy();
    };
    from.on('data', (bytes) => {
      if (answering.has(to)) sent += 1;
      if (!dead.has(from)) to.write(bytes);
    });
    from.on('error', end);
    from.on('close', () => {
      sockets.delete(from);
      answering.delete(from);
      end();
    });
    if (held.has(from)) from.pause();
  };
  const hold = (some: ReadonlySet<Socket>) => {
    held = some;
    for (const socket of held) socket.pause();
  };
  // A reserved port, which no other server gets while the wire is cut.
  const port = await freePort();
  const server = createServer((near) => {
    const far = connect(target, host);
    answering.add(far);
    join(near, far);
    join(far, near);
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  const cut = async () => {
    server.close();
    for (const socket of sockets) socket.destroy();
    await once(server, 'close');
  };
  return {
    port,
    sent: () => sent,
    cut,
    mend: async () => void (await once(server.listen(port, '127.0.0.1'), 'listening')),
    freeze: () => hold(sockets),
    holdAnswers: () => hold(answering),
    thaw: () => {
      held = new Set();
      for (const socket of sockets) socket.resume();
    },
    swallow: () => {
      for (const socket of sockets) dead.add(socket);
    },
    close: async () => {
      if (server.listening) await cut();
    },
  };
}
