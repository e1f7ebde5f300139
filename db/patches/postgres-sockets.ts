/*
 * Patch of postgres 3.4.9: the sockets of its connections.
 * Gives: correctness. No query is sent on a lost connection, none reconnects without end, and TLS is not started with
 * a server that refuses it.
 * Until: postgres.js looks at the error of a socket, and at the answer to its request for TLS.
 */
import { connect, type Socket } from 'node:net';
import type { PostgresAddress } from '../../shared/urls/postgres-url.js';

/** Opens the sockets of a connection, one after the other, and can end them all. */
export class Sockets {
  readonly #address: PostgresAddress;
  readonly #open = new Set<Socket>();
  #left: number;

  /** At most `max` sockets are opened. */
  constructor(address: PostgresAddress, max: number) {
    this.#address = address;
    this.#left = max;
  }

  open(): Socket {
    if (this.#left === 0) throw connectionLost();
    this.#left -= 1;
    const { host, port, ssl } = this.#address;
    const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
    // Without an error postgres.js would reconnect for ever, and without a pause, where connections are accepted and
    // closed at once, as by the proxy of a dead server.
    socket.once('end', () => socket.destroy(connectionLost()));
    // postgres.js uses a connection until 'close', which Node emits so late that a query could be sent in between.
    socket.once('error', () => queueMicrotask(() => socket.emit('close', true)));
    if (ssl) refuseWithoutTls(socket);
    for (const earlier of this.#open) if (earlier.destroyed) this.#open.delete(earlier);
    this.#open.add(socket);
    // postgres.js takes the server name for TLS from here.
    return Object.assign(socket, { host });
  }

  close(): void {
    this.#left = 0;
    for (const socket of this.#open) socket.destroy();
  }
}

const connectionLost = () =>
  Object.assign(new Error('the connection is lost'), { code: 'CONNECTION_CLOSED' });

/** The first byte says whether the server offers TLS; postgres.js ignores it and starts TLS. */
function refuseWithoutTls(socket: Socket): void {
  socket.once('data', ([answer]) => {
    if (answer !== 'S'.charCodeAt(0))
      socket.destroy(Object.assign(new Error('no TLS'), { code: 'TLS_NOT_OFFERED' }));
  });
}
