import type { AddressInfo } from 'node:net';
import { type Environment, parseConfig } from '../shared/config.js';
import { Lifecycle } from '../shared/lifecycle.js';
import { createLog, type Log } from '../shared/log.js';
import type { Outcome } from '../shared/outcome.js';
import { announce, runProgram } from '../shared/program.js';
import { openQueueStore, type QueueStore } from '../shared/queue.js';
import { createApp } from './app.js';
import { createUserCheck } from './authentication.js';
import { createGateway } from './gateway.js';
import { openQueueLink, type QueueLink } from './queue-link.js';
import { createApiServer } from './server.js';
import { createWaitingRoom, type WaitingRoom } from './waiting-room.js';

/** Time after the grace for everything else to close; a store that is gone takes a second at each step. */
const closingMs = 5000;
/** What a request is told that outlasts the grace. */
const cutShort: Outcome = { kind: 'failed', code: 'internal', retryable: true, queueMs: 0, providerMs: 0 };

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
  const api = lifecycle.opened('http server', createApiServer({ app, draining }), (open) =>
    open.close({ graceMs: config.SHUTDOWN_GRACE_MS, onGraceOver: () => waitingRoom.settleAll(cutShort) }),
  );
  const server = await api.listen(config.PORT, config.HOST);
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

await runProgram(serveApi);
