import { existsSync } from 'node:fs';
import { loadEnvFile } from 'node:process';
import { z } from 'zod';
import { providerIds } from '../contracts/contract.js';
import { addressVariables } from './address-variables.js';
import { apiVariables, tracingVariables } from './api-variables.js';
import { credentialVariables, hasCredentials, isBesideReal, isSimulated } from './provider-credentials.js';
import { choice, milliseconds } from './variable-types.js';
import { workerVariables } from './worker-variables.js';

/**
 * The configuration: one schema, every variable with its unit, default and one sentence. This file is the only
 * reader of the environment, but for OpenTelemetry's exporters and detectors, which read some `OTEL_*` themselves.
 * `.env.example` and the tables in the docs are generated from the schema by `cli/commands/config.ts`.
 */
export const environmentSchema = z.object({
  ...addressVariables,
  ...apiVariables,
  SHUTDOWN_GRACE_MS: milliseconds(0)
    .default(25_000)
    .describe('How long requests and jobs in flight may take to finish after SIGTERM, in milliseconds.'),
  STREAM_GRACE_MS: milliseconds(0)
    .default(25_000)
    .describe(
      'How long streams in flight may go on after SIGTERM, in milliseconds, within SHUTDOWN_GRACE_MS; then they end with a retryable error.',
    ),
  LOG_LEVEL: choice(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('info')
    .describe('Least severe log lines to write.'),
  ...workerVariables,
  ...tracingVariables,
});

export type Config = z.output<typeof environmentSchema>;

/** Environment variables by name, unparsed. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Thrown for an invalid configuration; lists all problems, each with the variable's name but never its value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';

  constructor(readonly problems: readonly string[]) {
    super(`Configuration problems:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
  }
}

/** The environment of this process, completed by `.env` in the working directory: variables that are set win. */
export function readEnvironment(): Environment {
  if (existsSync('.env')) loadEnvFile('.env');
  return process.env;
}

/** Parses the environment for one program. Throws `ConfigError`. A blank value counts as not set. */
export function parseConfig(environment: Environment, program: Program): Config {
  const present = Object.fromEntries(Object.entries(environment).filter(([, value]) => value?.trim()));
  const parsed = environmentSchema.safeParse(present);
  const issues = parsed.error?.issues ?? [];
  const invalid = new Set(issues.map(({ path, message }) => `${String(path[0])}: ${message}`));
  const problems = [
    ...invalid,
    ...(parsed.data ? [...clashingPorts(parsed.data), ...clashingNames(parsed.data)] : []),
    ...missing[program](new Set(Object.keys(present)), present),
  ];
  if (problems.length > 0 || !parsed.success) throw new ConfigError(problems);
  return parsed.data;
}

const clashingPorts = ({ PORT, METRICS_PORT }: Config): string[] =>
  METRICS_PORT === PORT && PORT !== 0 ? ['METRICS_PORT: must not be the same as PORT'] : [];

/** The password for chat is given to programs, so it must not open the console. */
const clashingNames = ({ CHAT_USERNAME, ADMIN_USERNAME }: Config): string[] =>
  ADMIN_USERNAME !== undefined && ADMIN_USERNAME === CHAT_USERNAME
    ? ['ADMIN_USERNAME: must not be the same as CHAT_USERNAME']
    : [];

/** Names of the variables that have a value. */
export const namesSet = (config: Config): ReadonlySet<string> =>
  new Set(Object.entries(config).flatMap(([name, value]) => (value === undefined ? [] : [name])));

/** Owner of a token, and so author of its posts, when none was named. */
export const defaultOwner = ({ CHAT_USERNAME }: Config): string => CHAT_USERNAME ?? 'blog';

/** The programs that read the configuration. Each requires other variables; `command`, `start`, `config` none. */
export type Program = 'api' | 'worker' | 'migrate' | 'command' | 'start' | 'config';

/** Lists the missing requirements, given the names of the variables that have a value, and their values. */
type Missing = (names: ReadonlySet<string>, values: Readonly<Record<string, string | undefined>>) => string[];

const missingStore: Missing = (names) =>
  names.has('REDIS_URL') || names.has('DATABASE_URL')
    ? []
    : ['REDIS_URL or DATABASE_URL: one of them must say where the queue lives (npm start brings its own)'];

const missingDatabase: Missing = (names) =>
  names.has('DATABASE_URL')
    ? []
    : ['DATABASE_URL: must be set, it holds the blog, users and tokens (npm start brings its own)'];

const halfUsers: Missing = (names) =>
  [
    ['CHAT_USERNAME', 'CHAT_PASSWORD'],
    ['ADMIN_USERNAME', 'ADMIN_PASSWORD'],
  ].flatMap((pair) => {
    const [unset, ...more] = pair.filter((name) => !names.has(name));
    return unset === undefined || more.length > 0
      ? []
      : [`${unset}: must be set, as ${pair.join(' and ')} belong together`];
  });

const missingProvider: Missing = (names, { WORKER_PROVIDERS }) => {
  const ids = providerIds.filter((id) => !WORKER_PROVIDERS || WORKER_PROVIDERS.includes(id));
  if (isBesideReal(names) || ids.some((id) => hasCredentials(names, id) || isSimulated(names, id))) return [];
  return ids.map((id) => `${credentialVariables[id]}: must be set to run a pool of ${id}`);
};

const missing: Record<Program, Missing> = {
  start: () => [],
  config: () => [],
  command: () => [],
  migrate: missingDatabase,
  api: (...facts) => [...missingDatabase(...facts), ...halfUsers(...facts)],
  worker: (...facts) => [...missingStore(...facts), ...missingProvider(...facts)],
};
