import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An HTTP server of one test file. */
export interface Served {
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Serves on a free port of the loopback address. A connection is kept until the client ends it: a server that ends idle
 * ones can do so while the client, in the same busy process, is sending the next request.
 */
export async function serve(listener: RequestListener): Promise<Served> {
  const server = createServer({ keepAliveTimeout: 0 }, listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
