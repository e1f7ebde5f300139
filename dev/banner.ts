import type { Config } from '../shared/config/config.js';
import { poolConfig } from '../shared/config/pool-config.js';
import { credentialVariables } from '../shared/config/provider-credentials.js';
import type { ProviderId } from '../shared/contracts/contract.js';
import type { Stages } from './stages.js';
import type { StartCredentials } from './stores.js';

/** The running services, and their addresses. */
interface Facts extends StartCredentials {
  config: Config;
  workerPorts: number[];
  /** Undefined when every provider is real. */
  simulatorUrl: string | undefined;
  simulated: ProviderId[];
  logDir: string;
}

const reachedAsLocalhost = new Set(['127.0.0.1', '0.0.0.0', '::', '::1', 'localhost']);

/** The address at which this machine reaches a server on the host and port. */
export function originOf({ HOST, PORT }: Pick<Config, 'HOST' | 'PORT'>): string {
  if (reachedAsLocalhost.has(HOST)) return `http://localhost:${PORT}`;
  return `http://${HOST.includes(':') ? `[${HOST}]` : HOST}:${PORT}`;
}

/** The text of `npm start` once everything runs: at most 20 lines for a newcomer, or everything with `--verbose`. */
export function banner(facts: Facts, { isVerbose }: { isVerbose: boolean }): string {
  const { config, credentials, admin } = facts;
  const origin = originOf(config);
  const ids = config.WORKER_PROVIDERS;
  const curls = isVerbose
    ? [...ids.map((id) => curl(id, facts)), ...blogCurls(facts)]
    : ids.slice(0, 1).map((id) => curl(id, facts));
  return `
Quillgate is up at ${origin}/

  Console    ${origin}/admin
  Name       ${admin.username}
  Password   ${secretLine(admin.password, admin.file)}

  Chat       ${urlUnder(config.CHAT_BASE_URL, '/chat')}
  Name       ${credentials.username}
  Password   ${secretLine(credentials.password, credentials.file)}

${isVerbose ? details(facts) : `  Providers  ${summary(facts)}\n`}
Try it
${curls.join('\n')}
${claudeCode(facts)}

${isVerbose ? '' : `More is at ${origin}/, and in npm start -- --verbose.\n`}Ctrl-C stops everything; the data stays.
`;
}

function summary({ config, simulated }: Facts): string {
  const real = config.WORKER_PROVIDERS.filter((id) => !simulated.includes(id));
  return [
    ...(real.length > 0 ? [`${real.join(', ')}: real`] : []),
    ...(simulated.length > 0 ? [`${simulated.join(', ')}: simulated, no model is called`] : []),
  ].join('; ');
}

function details(facts: Facts): string {
  const { config, workerPorts, simulatorUrl, tokens, logDir } = facts;
  const origin = originOf(config);
  const workers = workerPorts.map((PORT) => `${originOf({ ...config, PORT })}/readyz`);
  return `  Chat too   ${urlUnder(config.CHAT_BASE_URL_ALT, '/chat')}
  Blog       ${urlUnder(config.BLOG_BASE_URL, '/blogs')}   feeds: ${urlUnder(config.BLOG_BASE_URL, '/feed.json')} and /feed.xml
  API docs   ${origin}/docs   and ${origin}/openapi.json
  Health     ${origin}/readyz   workers: ${workers.join(' and ')}
  Queue      ${config.REDIS_URL ? 'Redis (REDIS_URL)' : 'in PostgreSQL; set REDIS_URL to use Redis'}
  Database   ${config.DATABASE_URL ? 'PostgreSQL (DATABASE_URL)' : `embedded PostgreSQL, data in ${config.DATA_DIR}/`}
  Logs       ${logDir}/
  Chat token ${secretLine(tokens.chat.token, tokens.chat.file)}
  Blog token ${secretLine(tokens.blog.token, tokens.blog.file)}

Providers
${config.WORKER_PROVIDERS.map((id) => describe(id, facts)).join('\n')}${
  simulatorUrl
    ? `\n  The simulator answers at ${simulatorUrl}; no model is called there and nothing costs money.`
    : ''
}

OpenAI-compatible clients (in their environment, not in .env here, where these names are the provider's)
  OPENAI_BASE_URL=${origin}/v1
  OPENAI_API_KEY=${tokens.chat.file ? tokens.chat.token : '$CHAT_TOKEN'}
`;
}

/** The two variables of Claude Code, before its command. */
const claudeCode = ({ config, tokens: { chat } }: Facts): string =>
  `  ANTHROPIC_BASE_URL=${originOf(config)} ANTHROPIC_AUTH_TOKEN=${chat.file ? chat.token : '$CHAT_TOKEN'} claude`;

const secretLine = (secret: string, file: string | undefined): string =>
  file ? `${secret}   (kept in ${file})` : 'as set in the environment';

/** Appends the path to that of the base, which may end with a slash. */
const urlUnder = (base: string, path: string): string => `${base.replace(/\/+$/, '')}${path}`;

function describe(id: ProviderId, facts: Facts): string {
  const name = id.padEnd(10);
  const variable = `${id.toUpperCase()}_MODEL`;
  if (facts.simulated.includes(id))
    return `  ${name} simulated; to make it real set ${credentialVariables[id]}, and ${variable} for requests that name no model`;
  return lacksModel(id, facts)
    ? `  ${name} real; requests must name a model in X-LLM-Model, or set ${variable}`
    : `  ${name} real`;
}

const lacksModel = (id: ProviderId, { config, simulated }: Facts): boolean =>
  !simulated.includes(id) && poolConfig(config, id).model === undefined;

function curl(id: ProviderId, facts: Facts): string {
  const { config, credentials } = facts;
  const user = credentials.file
    ? `${credentials.username}:${credentials.password}`
    : '"$CHAT_USERNAME:$CHAT_PASSWORD"';
  const model = lacksModel(id, facts) ? " -H 'X-LLM-Model: <model>'" : '';
  const body = `{"messages":[{"role":"user","content":"Hello, ${id}!"}]}`;
  const url = fromHere(config, config.CHAT_BASE_URL, '/chat');
  return `  curl -u ${user} -H 'X-LLM: ${id}'${model} -H 'Content-Type: application/json' -d '${body}' ${url}`;
}

function blogCurls({ config, tokens: { blog } }: Facts): string[] {
  const token = blog.file ? blog.token : '$BLOG_TOKEN';
  const url = fromHere(config, config.BLOG_BASE_URL, '/blogs');
  const body = '{"title":"Hello","content":"My *first* post."}';
  return [
    `  curl -H "Authorization: Bearer ${token}" -H 'Content-Type: application/json' -d '${body}' ${url}`,
    `  curl ${url}`,
  ];
}

/** The address from this machine instead of the public one. */
const fromHere = (config: Config, base: string, path: string): string =>
  urlUnder(`${originOf(config)}${new URL(base).pathname}`, path);

interface StartReportOptions {
  stages: Stages;
  config: Pick<Config, 'DATA_DIR' | 'DATABASE_URL' | 'REDIS_URL'>;
  /** Time for requests in flight during a stop, in milliseconds. */
  stopWithinMs: number;
}

/**
 * The progress of `npm start`: its stages until everything runs, then that it stops, and where the data is. A failed
 * start reports the reason only.
 */
export class StartReport {
  readonly #options: StartReportOptions;
  #state: 'starting' | 'up' | 'failed' | 'stopping' = 'starting';

  constructor(options: StartReportOptions) {
    this.#options = options;
  }

  /** Ignored once it is stopping: a stage may still be under way then. */
  begin(stage: string): void {
    if (this.#state === 'starting') this.#options.stages.begin(stage);
  }

  up(): void {
    this.#state = 'up';
    this.#options.stages.succeed();
  }

  failed(): void {
    this.#state = 'failed';
    this.#options.stages.fail();
  }

  stopping(): void {
    if (this.#state === 'failed') return;
    const seconds = Math.ceil(this.#options.stopWithinMs / 1000);
    const grace = this.#state === 'up' ? `; requests in flight have up to ${seconds} s` : '';
    this.#options.stages.turnTo(`Stopping${grace}`);
    this.#state = 'stopping';
  }

  stopped(): void {
    if (this.#state !== 'stopping') return;
    const { DATA_DIR, DATABASE_URL, REDIS_URL } = this.#options.config;
    const data = `the data is in ${DATABASE_URL ? 'your PostgreSQL (DATABASE_URL)' : `${DATA_DIR}/`}`;
    const queue = REDIS_URL ? ', the queue in your Redis (REDIS_URL)' : '';
    this.#options.stages.succeed(`Stopped; ${data}${queue}. The next start continues with it.`);
  }
}
