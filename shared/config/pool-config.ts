import { isDeepStrictEqual } from 'node:util';
import { type ProviderId, providerIds, type Target } from '../contracts/contract.js';
import type { ModelRules } from '../models/model-names.js';
import { type Config, environmentSchema, namesSet } from './config.js';
import { isSimulated } from './provider-credentials.js';

/** The configuration of one provider's pool. */
export interface PoolConfig {
  /** Jobs at once in this process. */
  concurrency: number;
  /** Longest call, or of a stream the longest wait for its first delta, in milliseconds. */
  timeoutMs: number;
  /** Longest wait for the first sign of life of a stream, in milliseconds. */
  firstTokenTimeoutMs: number;
  /** The same of a stream with a fallback; absent means as for any other. */
  firstTokenBeforeFallbackMs?: number | undefined;
  /** Longest silence in a stream, in milliseconds; before its first delta the longer of this and the time above. */
  idleTimeoutMs: number;
  /** How long a stream with a fallback may take to begin, in milliseconds; absent means as for any other. */
  fallbackAfterMs?: number | undefined;
  /** Model for requests that name none. */
  model: string | undefined;
  /** Other models that callers may name, as in `isModelAllowed`. */
  models?: readonly string[] | undefined;
  /** The models that the environment names, if operators have set others; see `isModelAllowed`. */
  environment?: ModelRules['environment'];
  /** The limits of replies, as in `outputLimitOf`; absent means none. */
  maxOutputTokens?: readonly string[] | undefined;
  /** Whether models are asked for their thinking in words, where a caller can be shown it; absent: they are not. */
  asksThinking?: boolean | undefined;
  /** The hosts that images may be fetched from, as in `isFromElsewhere`; absent means any public one. */
  imageHosts?: readonly string[] | undefined;
  /** The key of the hashes that name users to the provider; absent: it gets no user. */
  userKey?: string | undefined;
  /** Pause between the opening of a breaker and its probe, in milliseconds. */
  breakerResetMs: number;
  /** Whether the simulator plays the provider; absent: it does not. */
  isSimulated?: boolean | undefined;
}

/** Which models these settings allow. */
export const rulesOf = ({ model, models }: Pick<PoolConfig, 'model' | 'models'>): ModelRules => ({
  defaultModel: model,
  models,
});

/** The simulator's own model: the configured ones are meant for the real provider. */
const simulatedModel = 'sim-echo';

/** The providers that API processes ask when this one fails, unless the request or an operator names others. */
export const fallbackOf = (config: Config, id: ProviderId): Target[] | undefined =>
  config[`${id.toUpperCase() as Uppercase<ProviderId>}_FALLBACK`];

const baseUrlOf = (
  { OPENAI_BASE_URL: openai, ANTHROPIC_BASE_URL: anthropic }: Config,
  id: ProviderId,
): string | undefined => ({ openai, anthropic, bedrock: undefined, vertexai: undefined })[id];

/** The providers in whose place another server answers: the simulator, or one at their address variable. */
export const foreignProviders = (config: Config): ProviderId[] =>
  providerIds.filter((id) => isSimulated(namesSet(config), id) || baseUrlOf(config, id) !== undefined);

/** The `<PROVIDER>_…` variables of one provider. */
export function poolConfig(config: Config, id: ProviderId): PoolConfig {
  const prefix = id.toUpperCase() as Uppercase<ProviderId>;
  const isPlayed = isSimulated(namesSet(config), id);
  // A server there may be inside of a private network, and would fetch images from it.
  const isForeign = baseUrlOf(config, id) !== undefined && !isPlayed;
  const { firstTokenTimeoutMs, idleTimeoutMs } = usualTimes(id, isForeign);
  return {
    concurrency: config[`${prefix}_CONCURRENCY`],
    timeoutMs: config[`${prefix}_TIMEOUT_MS`],
    firstTokenTimeoutMs: config[`${prefix}_FIRST_TOKEN_TIMEOUT_MS`] ?? firstTokenTimeoutMs,
    idleTimeoutMs: config[`${prefix}_IDLE_TIMEOUT_MS`] ?? idleTimeoutMs,
    firstTokenBeforeFallbackMs:
      isForeign && config[`${prefix}_FIRST_TOKEN_TIMEOUT_MS`] === undefined ? 60_000 : undefined,
    fallbackAfterMs: config[`${prefix}_FALLBACK_AFTER_MS`],
    model: isPlayed ? simulatedModel : config[`${prefix}_MODEL`],
    models: isPlayed ? undefined : config[`${prefix}_MODELS`],
    maxOutputTokens: config[`${prefix}_MAX_OUTPUT_TOKENS`],
    asksThinking: config[`${prefix}_THINKING`] === 'shown' || undefined,
    imageHosts: isForeign ? config.IMAGE_HOSTS : undefined,
    userKey: config.PROVIDER_USER_KEY,
    breakerResetMs: config.BREAKER_RESET_MS,
    isSimulated: isPlayed || undefined,
  };
}

/**
 * How long a model may think in silence. OpenAI and Anthropic say within seconds that they have begun, and then send
 * `keepalive` or `ping` twice a minute. Bedrock sends nothing between its frames (anthropics/claude-code#25407), Vertex
 * AI and servers of others nothing before the first part. Such a server may be down as well, so a fallback waits less.
 */
const usualTimes = (id: ProviderId, isForeign: boolean) =>
  isForeign || id === 'bedrock' || id === 'vertexai'
    ? { firstTokenTimeoutMs: 300_000, idleTimeoutMs: 600_000 }
    : { firstTokenTimeoutMs: 60_000, idleTimeoutMs: 300_000 };

/** The settings that operators may change, and the end of their variables after the name of the provider. */
const variables = {
  concurrency: 'CONCURRENCY',
  timeoutMs: 'TIMEOUT_MS',
  firstTokenTimeoutMs: 'FIRST_TOKEN_TIMEOUT_MS',
  idleTimeoutMs: 'IDLE_TIMEOUT_MS',
  fallbackAfterMs: 'FALLBACK_AFTER_MS',
  model: 'MODEL',
  models: 'MODELS',
} as const;

/** The variable of a provider's setting that operators may change. */
export const variableOf = (id: ProviderId, setting: keyof typeof variables): string =>
  `${id.toUpperCase()}_${variables[setting]}`;

/** The settings of a provider's pools by name, as far as they are not at the defaults of its own address. */
export function configuredSettings(config: Config, id: ProviderId): Readonly<Record<string, unknown>> {
  const presets = defaultSettings(id);
  const { firstTokenTimeoutMs, idleTimeoutMs } = poolConfig(config, id);
  const own = settingsOf(id, (variable) => config[variable]);
  const set = { ...own, firstTokenTimeoutMs, idleTimeoutMs };
  return Object.fromEntries(
    Object.entries(set).filter(([name, value]) => !isDeepStrictEqual(value, presets[name])),
  );
}

/** The same settings without an environment. */
export const defaultSettings = (id: ProviderId): Readonly<Record<string, unknown>> => ({
  ...settingsOf(id, (variable) => environmentSchema.shape[variable].safeParse(undefined).data),
  ...usualTimes(id, false),
});

type Variable = `${Uppercase<ProviderId>}_${(typeof variables)[keyof typeof variables]}`;

function settingsOf(id: ProviderId, read: (variable: Variable) => unknown): Record<string, unknown> {
  const prefix = id.toUpperCase() as Uppercase<ProviderId>;
  return Object.fromEntries(
    Object.entries(variables).map(([name, variable]) => [name, read(`${prefix}_${variable}`)]),
  );
}
