import { providerIds } from '../contracts/contract.js';
import { credentialVariables, hasCredentials, isBesideReal, isSimulated } from './provider-credentials.js';

/** The programs that read the configuration. Each requires other variables; `command`, `start`, `config` none. */
export type Program = 'api' | 'worker' | 'migrate' | 'command' | 'start' | 'config';

/** The missing requirements of a program, given the variables that have a value, and their names. */
export const missingVariables = (program: Program, ...facts: Parameters<Missing>): string[] =>
  missing[program](...facts);

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
