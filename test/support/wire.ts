import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A line to a TCP server of this machine that can go silent without closing, as a frozen server's does. */
export interface Wire {
  readonly port: number;
  /** From now on nothing comes through, in either direction; connecting still works. */
  freeze(): void;
  /** Lets through what was held back, and all that follows. */
  thaw(): void;
  close(): Promise<void>;
}

/** Opens a wire to a port of the loopback address. */
export async function openWire(target: number): Promise<Wire> {
  const sockets = new Set<Socket>();
  let frozen = false;
  const join = (from: Socket, to: Socket) => {
    sockets.add(from);
    from.on('data', (bytes) => to.write(bytes));
    from.on('error', () => to.destroy());
    from.on('close', () => {
      sockets.delete(from);
      to.destroy();
    });
    if (frozen) from.pause();
  };
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1');
    join(near, far);
    join(far, near);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    freeze: () => {
      frozen = true;
      for (const socket of sockets) socket.pause();
    },
    thaw: () => {
      frozen = false;
      for (const socket of sockets) socket.resume();
    },
    close: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
