import { providerIds } from '../../shared/contracts/contract.js';
import { simulatorEnvironment } from '../support/simulator-environment.js';
import { failureOf, launcherOf, type Place, runToEnd, startProgram, thisCheckout } from './programs.js';
import { openStore, type Store, type StoreName } from './stores.js';

const secret = 'only-on-loopback';

/** With the credentials of the first user. */
export const chatHeaders = {
  Authorization: `Basic ${Buffer.from(`bench:${secret}`).toString('base64')}`,
  'Content-Type': 'application/json',
  'X-LLM': 'openai',
};

/** The conversation of every request. */
export const chatBody = JSON.stringify({
  messages: [{ role: 'user', content: 'What is a queue good for?' }],
});

interface GatewayOptions {
  simulatorUrl: string;
  checkout?: string | undefined;
  workers?: number;
  /** Variables of a run's own. */
  settings?: Record<string, string>;
  /** Variables of the API alone. */
  apiSettings?: Record<string, string>;
}

/** Starts one API process and workers of a checkout on a store of their own, and waits until they are ready. */
export async function openGateway(name: StoreName, options: GatewayOptions, place: Place) {
  const { simulatorUrl, checkout = thisCheckout, workers = 1 } = options;
  const store = await openStore(name, place);
  await migrate(store, place, checkout);
  const environment = {
    ...{ PATH: process.env.PATH, NODE_ENV: 'production', HOST: '127.0.0.1', PORT: '0', WORKER_PORT: '0' },
    ...{ CHAT_USERNAME: 'bench', CHAT_PASSWORD: secret, OPENAI_CONCURRENCY: '1000' },
    ...store.variables,
    ...simulatorEnvironment([...providerIds], simulatorUrl),
    ...(process.env.OPENAI_WIRE && { OPENAI_WIRE: process.env.OPENAI_WIRE }),
    ...options.settings,
  };
  const start = async (title: string, command: string, own: Record<string, string> = {}) => {
    const variables = { ...environment, ...own };
    const program = await startProgram(
      { name: title, args: [command], environment: variables, checkout },
      place,
    );
    await program.ready;
    return program;
  };
  const startWorker = (title: string) => start(title, 'worker');
  const numbers = Array.from({ length: workers }, (_, n) => n + 1);
  const starting = numbers.map((number) => startWorker(`worker-${number}`));
  const [api, ...started] = await Promise.all([start('api', 'api', options.apiSettings), ...starting]);
  /** Rejects when one of them, but for the last worker of several, ends although it was not asked to. */
  const failed = failureOf([api, ...started.slice(0, Math.max(1, workers - 1))], place);
  return { url: `http://127.0.0.1:${api.port}`, api, workers: started, store, failed, startWorker };
}

/** Brings the schema to what the checkout's programs need. */
export const migrate = ({ variables }: Pick<Store, 'variables'>, place: Place, checkout = thisCheckout) =>
  runToEnd([launcherOf(checkout), 'migrate'], place, { PATH: process.env.PATH, ...variables });
