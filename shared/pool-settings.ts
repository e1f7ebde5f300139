import { type Config, namesSet } from './config.js';
import type { ProviderId } from './contract.js';
import { isSimulated } from './credentials.js';

/** Limits of one provider's pool. */
export interface PoolSettings {
  /** Jobs at once in this process. */
  concurrency: number;
  /** Longest call, in milliseconds. */
  timeoutMs: number;
  /** Model for requests that name none. */
  model: string | undefined;
  maxOutputTokens: number;
}

/** The simulator's own model: the configured one is meant for the real provider. */
const simulatedModel = 'sim-echo';

/** The `<PROVIDER>_…` variables of one provider. */
export function poolSettings(config: Config, id: ProviderId): PoolSettings {
  const prefix = id.toUpperCase() as Uppercase<ProviderId>;
  return {
    concurrency: config[`${prefix}_CONCURRENCY`],
    timeoutMs: config[`${prefix}_TIMEOUT_MS`],
    model: isSimulated(namesSet(config), id) ? simulatedModel : config[`${prefix}_MODEL`],
    maxOutputTokens: config[`${prefix}_MAX_OUTPUT_TOKENS`],
  };
}
