import { existsSync } from 'node:fs';
import { loadEnvFile } from 'node:process';
import { z } from 'zod';
import { providerIds } from '../contract.js';
import { parsePostgresUrl } from '../urls/postgres-url.js';
import { parseRedisUrl } from '../urls/redis-url.js';
import { StoreUrlError } from '../urls/store-url-error.js';
import { missingVariables, type Program } from './requirements.js';

/**
 * The configuration: one schema, every variable with its unit, default and one sentence. This file is the only
 * reader of the environment; `.env.example` and the table in the docs are generated from `environmentSchema`.
 */

const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]']);

const port = z.coerce.number().int().min(0).max(65535);
const milliseconds = (least: number) => z.coerce.number().int().min(least).max(3_600_000);
const count = (most: number) => z.coerce.number().int().min(1).max(most);
const byteCount = z.coerce.number().int().min(1024).max(1_099_511_627_776);
const text = z.string().min(1);
/** Marks a variable whose value is never shown; the mark has to stand outside `optional` to be seen. */
const secret = (schema: z.ZodType<string>, description: string) =>
  schema.optional().meta({ secret: true, description });
const httpUrl = z.url({ protocol: /^https?$/, error: 'must be an http:// or https:// URL' });
const providerUrl = httpUrl.refine(
  (value) =>
    !URL.canParse(value) ||
    new URL(value).protocol === 'https:' ||
    loopbackHosts.has(new URL(value).hostname),
  'must be https:// unless it points to a loopback address',
);
const storeUrl = (parse: (url: string) => unknown) =>
  z.string().check(({ value, issues }) => {
    try {
      parse(value);
    } catch (error) {
      if (!(error instanceof StoreUrlError)) throw error;
      issues.push({ code: 'custom', message: error.message, input: value });
    }
  });

/** What somebody types to be done with it (one key held down, a word twice) is guessed; what is drawn has more, also in hexadecimal. */
const varied = z
  .string()
  .refine((value) => new Set(value).size >= 8, 'must have at least 8 different characters');

/** A comma list. */
const list = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);
const imageHost = /^(\*\.)?([a-z0-9-]+\.)+[a-z0-9-]+(:\d{1,5})?$/i;
const areImageHosts = (parts: readonly string[]): boolean =>
  ['https', 'none'].includes(parts.join()) ||
  (parts.length > 0 && parts.every((part) => imageHost.test(part)));

const proxyAddress = z.union(
  [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6(), z.enum(['loopback', 'linklocal', 'uniquelocal'])],
  { error: 'must be a comma list of addresses, networks, or loopback, linklocal, uniquelocal' },
);

const providerList = z
  .array(z.enum(providerIds, { error: `must be a comma list of: ${providerIds.join(', ')}` }))
  .min(1);

const modelPattern = z.string().regex(/^[A-Za-z0-9*][A-Za-z0-9._:/@*-]{0,255}$/, {
  error: 'must be a comma list of model names, in which * stands for any characters',
});

const perProvider = {
  concurrency: () => count(10_000).default(20),
  timeoutMs: () => milliseconds(100).default(45_000),
  model: () => text.optional(),
  models: () =>
    z
      .string()
      .transform((list) => list.split(',').map((name) => name.trim()))
      .pipe(z.array(modelPattern).max(50, 'must have at most 50 names'))
      .optional(),
  maxOutputTokens: () => count(1_000_000).default(4096),
};

export const environmentSchema = z.object({
  PORT: port.default(3000).describe('Port of the API.'),
  HOST: text
    .default('0.0.0.0')
    .describe('Address the API and the workers listen on (127.0.0.1 under npm start).'),
  CHAT_BASE_URL: httpUrl
    .default('http://localhost:3000')
    .describe('Public base address of the chat service.'),
  CHAT_BASE_URL_ALT: httpUrl
    .default('http://localhost:3000/v1')
    .describe('Alternative public base address of the chat service.'),
  BLOG_BASE_URL: httpUrl
    .default('http://localhost:3000')
    .describe('Public base address of the blog and its feeds.'),
  WORKER_PORT: port
    .default(3001)
    .describe("Port of a worker's health and metrics pages; 0 picks a free one."),
  METRICS_PORT: port
    .optional()
    .describe(
      "Port of the API's metrics, with the health pages beside them; when it is set, /metrics is no longer at PORT, which keeps /livez and /readyz. A worker has its own at WORKER_PORT.",
    ),
  SIMULATOR_PORT: port.default(3002).describe('Port of the provider simulator under npm start.'),
  SIMULATOR_URL: httpUrl
    .optional()
    .describe(
      'Address of a provider simulator, which plays every provider that has no credentials here. npm start brings its own.',
    ),
  REAL_PROVIDERS: list
    .pipe(providerList)
    .optional()
    .describe(
      'Comma list of the providers that have credentials anywhere in this installation, which docker-compose.yml fills in. When it names any, SIMULATOR_URL plays nobody, and a worker without credentials runs without a pool instead of refusing to start.',
    ),
  DATA_DIR: text.default('.data').describe('Where npm start keeps its database and the credentials it made.'),
  DATABASE_URL: secret(
    storeUrl(parsePostgresUrl),
    'PostgreSQL for the blog, users and tokens, and for the queue when REDIS_URL is not set. npm start brings its own.',
  ),
  DATABASE_POOL_SIZE: count(1000)
    .default(10)
    .describe(
      'Connections to PostgreSQL per API process, beside two for health and news, and those of a queue that lives there.',
    ),
  REDIS_URL: secret(
    storeUrl(parseRedisUrl),
    'Redis for the queue (redis://, redis-sentinel:// or redis-cluster://, with rediss for TLS); when it is not set the queue lives in PostgreSQL.',
  ),
  CHAT_USERNAME: z
    .string()
    .min(1)
    .max(128)
    .regex(/^[^:\p{Cc}]*$/u, 'must not contain a colon or control characters')
    .optional()
    .describe('Name of the first chat user.'),
  CHAT_PASSWORD: secret(
    z.string().min(16).max(512).pipe(varied),
    'Its secret, at least 16 characters, 8 of them different.',
  ),
  BLOG_TITLE: text.max(300).default('Blog').describe('Title of the feeds and of the pages of posts.'),
  BLOG_READS: z
    .enum(['public', 'token'])
    .default('public')
    .describe('Who may read posts and feeds: everyone (public), or tokens that may read or write (token).'),
  BLOG_IMAGES: list
    .refine(areImageHosts, 'must be https, none, or a comma list of hosts such as images.example.org')
    .default(['https'])
    .describe(
      'Where the images on the pages of posts may come from: https (anywhere), none, or a comma list of hosts (images.example.org, *.example.org). Each host sees who reads the post.',
    ),
  BLOG_READS_PER_SECOND: z.coerce
    .number()
    .int()
    .min(0)
    .max(1_000_000)
    .default(20)
    .describe(
      'Most reads of posts and feeds without credentials from one address a second, on average over ten seconds, per API process; 0 for any number, where a proxy in front limits them.',
    ),
  BLOG_TOKEN: secret(
    z
      .string()
      .min(32)
      .max(512)
      .regex(/^[\x21-\x7e]*$/, 'must be visible ASCII without spaces')
      .pipe(varied),
    'First access token of the blog, with scopes blogs:write and blogs:read; at least 32 characters, 8 of them different.',
  ),
  TRUSTED_PROXIES: list
    .pipe(z.array(proxyAddress).min(1))
    .optional()
    .describe(
      'Comma list of addresses or networks (10.0.0.0/8, loopback) of proxies whose X-Forwarded-For is believed.',
    ),
  CHAT_TIMEOUT_MS: milliseconds(1000)
    .default(55_000)
    .describe('Deadline of a chat request that does not name its own, in milliseconds.'),
  CHAT_MAX_WAIT_S: count(3600)
    .default(300)
    .describe(
      'Longest deadline a caller may ask for with Prefer: wait=N, in seconds; the same for all API processes, each of which forgets jobs that are a minute older.',
    ),
  CHAT_USER_MAX_IN_FLIGHT: count(100_000)
    .optional()
    .describe(
      'Most chat requests of one user at once, asynchronous chats included, per API process; when it is not set, ten times what all pools can run at once, and at least 100.',
    ),
  CHAT_USER_MAX_QUEUED_BYTES: byteCount
    .default(67_108_864)
    .describe(
      'Most bytes of conversations that one user may have queued and running, per API process; one alone may be larger.',
    ),
  CHAT_MAX_QUEUED_BYTES: byteCount
    .default(268_435_456)
    .describe('Most bytes of conversations that all users may have queued and running, per API process.'),
  CHAT_USER_MAX_PER_MINUTE: count(1_000_000)
    .optional()
    .describe(
      'Most chat requests of one user in a minute, per API process, reading and cancelling not counted; any number when it is not set.',
    ),
  CHAT_RESULT_TTL_S: count(86_400)
    .default(3600)
    .describe('How long after its deadline a stored chat can be read and its key counts, in seconds.'),
  MAX_BODY_BYTES: z.coerce
    .number()
    .int()
    .min(1024)
    .max(67_108_864)
    .default(1_048_576)
    .describe('Largest request body, in bytes.'),
  MAX_MESSAGES: count(100_000).default(1000).describe('Most messages in one conversation.'),
  MAX_JSON_DEPTH: count(1000).default(32).describe('Deepest nesting of a JSON body.'),
  SHUTDOWN_GRACE_MS: milliseconds(0)
    .default(25_000)
    .describe('How long requests and jobs in flight may take to finish after SIGTERM, in milliseconds.'),
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('info')
    .describe('Least severe log lines to write.'),

  WORKER_PROVIDERS: z
    .string()
    .default(providerIds.join(','))
    .transform((list) => [...new Set(list.split(',').map((name) => name.trim()))])
    .pipe(providerList)
    .describe('Comma list of the pools this worker process runs.'),
  WORKER_LOCK_MS: milliseconds(1000)
    .default(15_000)
    .describe('How long a worker may be silent before its jobs count as abandoned, in milliseconds.'),
  WORKER_STALLED_CHECK_MS: milliseconds(100)
    .default(2500)
    .describe('How often abandoned jobs are looked for, in milliseconds.'),
  BREAKER_RESET_MS: milliseconds(100)
    .default(10_000)
    .describe('How long a breaker stays open before it probes, in milliseconds.'),
  PROVIDER_MAX_RESPONSE_BYTES: z.coerce
    .number()
    .int()
    .min(65_536)
    .max(268_435_456)
    .default(16_777_216)
    .describe(
      'Largest answer of a provider that is read, in bytes; a call whose answer is larger ends with provider_error. A pool may hold one per job at once.',
    ),

  OPENAI_API_KEY: secret(z.string().min(1), 'Credential of OpenAI.'),
  OPENAI_BASE_URL: providerUrl.optional().describe("OpenAI's address, as its SDK names it."),
  OPENAI_MODEL: perProvider.model().describe('Model for requests without X-LLM-Model.'),
  OPENAI_MODELS: perProvider
    .models()
    .describe(
      'Comma list of the models of OpenAI that callers may name besides OPENAI_MODEL, with * for any characters; any plain name when it is not set.',
    ),
  OPENAI_CONCURRENCY: perProvider.concurrency().describe('OpenAI jobs at once per worker process.'),
  OPENAI_TIMEOUT_MS: perProvider.timeoutMs().describe('Longest call to OpenAI, in milliseconds.'),
  OPENAI_MAX_OUTPUT_TOKENS: perProvider.maxOutputTokens().describe('Longest reply of OpenAI, in tokens.'),

  ANTHROPIC_API_KEY: secret(z.string().min(1), 'Credential of Anthropic.'),
  ANTHROPIC_BASE_URL: providerUrl.optional().describe("Anthropic's address, as its SDK names it."),
  ANTHROPIC_MODEL: perProvider.model().describe('Model for requests without X-LLM-Model.'),
  ANTHROPIC_MODELS: perProvider
    .models()
    .describe(
      'Comma list of the models of Anthropic that callers may name besides ANTHROPIC_MODEL, with * for any characters; any plain name when it is not set.',
    ),
  ANTHROPIC_CONCURRENCY: perProvider.concurrency().describe('Anthropic jobs at once per worker process.'),
  ANTHROPIC_TIMEOUT_MS: perProvider.timeoutMs().describe('Longest call to Anthropic, in milliseconds.'),
  ANTHROPIC_MAX_OUTPUT_TOKENS: perProvider
    .maxOutputTokens()
    .describe('Longest reply of Anthropic, in tokens.'),

  AWS_REGION: text
    .optional()
    .describe('Region of Bedrock; credentials come from the AWS chain (keys, profile, role).'),
  AWS_ENDPOINT_URL_BEDROCK_RUNTIME: providerUrl
    .optional()
    .describe("Bedrock's address, as the AWS SDK names it."),
  BEDROCK_MODEL: perProvider.model().describe('Model for requests without X-LLM-Model.'),
  BEDROCK_MODELS: perProvider
    .models()
    .describe(
      'Comma list of the models of Bedrock that callers may name besides BEDROCK_MODEL, with * for any characters; any plain name when it is not set.',
    ),
  BEDROCK_CONCURRENCY: perProvider.concurrency().describe('Bedrock jobs at once per worker process.'),
  BEDROCK_TIMEOUT_MS: perProvider.timeoutMs().describe('Longest call to Bedrock, in milliseconds.'),
  BEDROCK_MAX_OUTPUT_TOKENS: perProvider.maxOutputTokens().describe('Longest reply of Bedrock, in tokens.'),

  GOOGLE_CLOUD_PROJECT: text
    .optional()
    .describe('Project of Vertex AI, used with application default credentials.'),
  GOOGLE_CLOUD_LOCATION: text.optional().describe('Location of Vertex AI, used with GOOGLE_CLOUD_PROJECT.'),
  GOOGLE_API_KEY: secret(z.string().min(1), 'Credential of Vertex AI in express mode, instead of a project.'),
  GOOGLE_VERTEX_BASE_URL: providerUrl.optional().describe("Vertex AI's address, as its SDK names it."),
  VERTEXAI_MODEL: perProvider.model().describe('Model for requests without X-LLM-Model.'),
  VERTEXAI_MODELS: perProvider
    .models()
    .describe(
      'Comma list of the models of Vertex AI that callers may name besides VERTEXAI_MODEL, with * for any characters; any plain name when it is not set.',
    ),
  VERTEXAI_CONCURRENCY: perProvider.concurrency().describe('Vertex AI jobs at once per worker process.'),
  VERTEXAI_TIMEOUT_MS: perProvider.timeoutMs().describe('Longest call to Vertex AI, in milliseconds.'),
  VERTEXAI_MAX_OUTPUT_TOKENS: perProvider
    .maxOutputTokens()
    .describe('Longest reply of Vertex AI, in tokens.'),
});

export type Config = z.output<typeof environmentSchema>;

/** Environment variables by name, as the process got them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Thrown for bad configuration; every problem at once, each naming the variable but never its value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';

  constructor(readonly problems: readonly string[]) {
    super(`Configuration problems:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
  }
}

/** The environment of this process with `.env` of the working directory beneath it (existing variables win). */
export function readEnvironment(): Environment {
  if (existsSync('.env')) loadEnvFile('.env');
  return process.env;
}

/** Parses the environment for one program. Throws `ConfigError`. A blank value counts as not set. */
export function parseConfig(environment: Environment, program: Program): Config {
  const present = Object.fromEntries(Object.entries(environment).filter(([, value]) => value?.trim()));
  const parsed = environmentSchema.safeParse(present);
  const invalid = (parsed.error?.issues ?? []).map((issue) => `${String(issue.path[0])}: ${issue.message}`);
  const problems = [
    ...invalid,
    ...(parsed.data ? clashingPorts(parsed.data) : []),
    ...missingVariables(program, new Set(Object.keys(present)), present),
  ];
  if (problems.length > 0 || !parsed.success) throw new ConfigError(problems);
  return parsed.data;
}

/** The API listens on both of its ports. */
const clashingPorts = ({ PORT, METRICS_PORT }: Config): string[] =>
  METRICS_PORT === PORT && PORT !== 0 ? ['METRICS_PORT: must not be the same as PORT'] : [];

/** Names of the variables that have a value. */
export const namesSet = (config: Config): ReadonlySet<string> =>
  new Set(Object.entries(config).flatMap(([name, value]) => (value === undefined ? [] : [name])));

/** Who owns a token, and so writes its posts, when nobody was named. */
export const defaultOwner = ({ CHAT_USERNAME }: Config): string => CHAT_USERNAME ?? 'blog';
