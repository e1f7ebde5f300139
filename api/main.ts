import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Environment, parseConfig } from '../shared/config.js';
import { Lifecycle } from '../shared/lifecycle.js';
import { createLog, type Log } from '../shared/log.js';
import { announce, runProgram } from '../shared/program.js';
import { openQueueStore, type QueueStore } from '../shared/queue.js';
import { createApp } from './app.js';
import { createUserCheck } from './authentication.js';
import { createGateway } from './gateway.js';
import { problemForRawSocket } from './problem.js';
import { openQueueLink, type QueueLink } from './queue-link.js';
import { createWaitingRoom, type WaitingRoom } from './waiting-room.js';

/** Time after the grace in which connections are closed. */
const closingMs = 2000;
/** Longer than the usual 60 s of load balancers, so that they never use a connection that we have just closed. */
const keepAliveMs = 65_000;

/** The `api` program: serves until it is told to stop. */
async function serveApi(environment: Environment): Promise<void> {
  const config = parseConfig(environment, 'api');
  const log = createLog({ program: 'api', level: config.LOG_LEVEL });
  const lifecycle = new Lifecycle(log);
  lifecycle.closeOnSignals({ graceMs: config.SHUTDOWN_GRACE_MS + closingMs });

  const store = lifecycle.opened('queue store', openQueueStore(config, log), (open) => open.close());
  const waitingRoom = createWaitingRoom();
  const link = linkWhenReady({ store, waitingRoom, log, lifecycle });
  const gateway = createGateway({ link, waitingRoom, timeoutMs: config.CHAT_TIMEOUT_MS });
  const checkUser = createUserCheck({ name: config.CHAT_USERNAME ?? '', secret: config.CHAT_PASSWORD ?? '' });

  const draining = () => lifecycle.stopping.aborted;
  const app = createApp({
    config,
    gateway,
    checkUser,
    store,
    linked: () => link() !== undefined,
    draining,
    log,
  });
  const server = lifecycle.opened(
    'http server',
    createServer({ keepAliveTimeout: keepAliveMs }, app),
    (open) => closeServer(open, config.SHUTDOWN_GRACE_MS),
  );
  // A connection that becomes idle while draining would keep the server open for the rest of its keep-alive time.
  server.on('request', (_request, response) => {
    response.once('close', () => draining() && server.closeIdleConnections());
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (socket.writable) socket.end(problemForRawSocket(error));
    else socket.destroy();
  });
  await listen(server, config.PORT, config.HOST);
  const { port } = server.address() as AddressInfo;
  announce({ type: 'listening', port });
  log.info({ port, queue: store.kind }, 'listening');
}

interface LinkingDeps {
  store: QueueStore;
  waitingRoom: WaitingRoom;
  log: Log;
  lifecycle: Lifecycle;
}

/** The link is opened in the background: the process serves its health pages while the store is still away. */
function linkWhenReady({ store, waitingRoom, log, lifecycle }: LinkingDeps): () => QueueLink | undefined {
  let link: QueueLink | undefined;
  const open = async () => {
    while (link === undefined && (await store.whenReady(lifecycle.stopping))) {
      link = await openQueueLink({ store, waitingRoom, log }).catch((err) => {
        log.warn({ err }, 'the store went away while it was being linked');
        return undefined;
      });
    }
    if (link === undefined) return;
    log.info('queue linked');
    announce({ type: 'ready' });
  };
  const opening = open();
  lifecycle.opened('queue link', opening, async () => {
    await opening;
    await link?.close();
  });
  return () => link;
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
}

/** Takes no more connections, lets requests in flight finish within the grace, then closes what is left. */
function closeServer(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const cutShort = setTimeout(() => server.closeAllConnections(), graceMs);
    server.close(() => {
      clearTimeout(cutShort);
      resolve();
    });
    server.closeIdleConnections();
  });
}

await runProgram(serveApi);
