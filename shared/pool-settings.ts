import type { Config } from './config.js';
import type { ProviderId } from './contract.js';

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

/** The `<PROVIDER>_…` variables of one provider. */
export function poolSettings(config: Config, id: ProviderId): PoolSettings {
  const prefix = id.toUpperCase() as Uppercase<ProviderId>;
  return {
    concurrency: config[`${prefix}_CONCURRENCY`],
    timeoutMs: config[`${prefix}_TIMEOUT_MS`],
    model: config[`${prefix}_MODEL`],
    maxOutputTokens: config[`${prefix}_MAX_OUTPUT_TOKENS`],
  };
}
