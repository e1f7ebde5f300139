import type { ProviderId } from '../contract.js';
import { type Config, namesSet } from './config.js';
import { isSimulated } from './provider-credentials.js';

/** What one provider's pool goes by. */
export interface PoolSettings {
  /** Jobs at once in this process. */
  concurrency: number;
  /** Longest call, in milliseconds. */
  timeoutMs: number;
  /** Model for requests that name none. */
  model: string | undefined;
  /** What callers may name besides, as in `isModelAllowed`. */
  models?: readonly string[];
  maxOutputTokens: number;
  /** Pause between the opening of a breaker and its probe, in milliseconds. */
  breakerResetMs: number;
}

/** The simulator's own model: the configured ones are meant for the real provider. */
const simulatedModel = 'sim-echo';

/** The `<PROVIDER>_…` variables of one provider. */
export function poolSettings(config: Config, id: ProviderId): PoolSettings {
  const prefix = id.toUpperCase() as Uppercase<ProviderId>;
  const isPlayed = isSimulated(namesSet(config), id);
  const models = isPlayed ? undefined : config[`${prefix}_MODELS`];
  return {
    concurrency: config[`${prefix}_CONCURRENCY`],
    timeoutMs: config[`${prefix}_TIMEOUT_MS`],
    model: isPlayed ? simulatedModel : config[`${prefix}_MODEL`],
    ...(models && { models }),
    maxOutputTokens: config[`${prefix}_MAX_OUTPUT_TOKENS`],
    breakerResetMs: config.BREAKER_RESET_MS,
  };
}
