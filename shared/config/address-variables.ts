import { parsePostgresUrl } from '../urls/postgres-url.js';
import { parseRedisUrl } from '../urls/redis-url.js';
import { count, httpUrl, list, port, providerList, secret, storeUrl, text } from './variable-types.js';

/** Below `/admin` only operators find chat and blog. */
const baseUrl = httpUrl.refine((url) => !/^\/admin(\/|$)/.test(URL.parse(url)?.pathname ?? ''), {
  error: 'must not be below /admin, where the operators have their addresses',
  when: ({ issues }) => issues.length === 0,
});

/** Where the programs listen, and where they find each other, their stores and their data. */
export const addressVariables = {
  PORT: port.default(3000).describe('Port of the API.'),
  HOST: text
    .default('0.0.0.0')
    .describe('Address the API and the workers listen on (127.0.0.1 under npm start).'),
  CHAT_BASE_URL: baseUrl
    .default('http://localhost:3000')
    .describe('Public base address of the chat service.'),
  CHAT_BASE_URL_ALT: baseUrl
    .default('http://localhost:3000/v1')
    .describe('Alternative public base address of the chat service.'),
  BLOG_BASE_URL: baseUrl
    .default('http://localhost:3000')
    .describe('Public base address of the blog and its feeds.'),
  WORKER_PORT: port
    .default(3001)
    .describe("Port of a worker's health and metrics pages; 0 picks a free one."),
  METRICS_PORT: port
    .optional()
    .describe(
      "Port of the API's metrics, with the health pages beside them; when it is set, /metrics is no longer at PORT, which keeps /livez and /readyz. Without it /metrics at PORT asks for a token with the scope admin, unless HOST is a loopback address. A worker has its own at WORKER_PORT.",
    ),
  SIMULATOR_PORT: port.default(3002).describe('Port of the provider simulator under npm start.'),
  SIMULATOR_URL: httpUrl
    .optional()
    .describe(
      'Address of a provider simulator, which stands in for every provider without credentials. npm start brings its own.',
    ),
  REAL_PROVIDERS: list
    .pipe(providerList)
    .optional()
    .describe(
      'Comma list of the providers that have credentials anywhere in this installation; docker-compose.yml fills it in. When it names any, SIMULATOR_URL has no effect, and a worker without credentials runs without a pool instead of refusing to start.',
    ),
  DATA_DIR: text.default('.data').describe('Where npm start keeps its database and the credentials it made.'),
  DATABASE_URL: secret(
    storeUrl(parsePostgresUrl),
    'PostgreSQL for the blog, users and tokens, and for the queue when REDIS_URL is not set. npm start brings its own.',
  ),
  DATABASE_POOL_SIZE: count(1000)
    .default(10)
    .describe(
      'Connections of each API process to PostgreSQL. Two more are used for health checks and notifications, and up to 22 if the queue is in PostgreSQL.',
    ),
  REDIS_URL: secret(
    storeUrl(parseRedisUrl),
    'Redis for the queue (redis://, redis-sentinel:// or redis-cluster://, with rediss for TLS); when it is not set the queue lives in PostgreSQL.',
  ),
};
