import { isDeepStrictEqual } from 'node:util';
import { type Config, environmentSchema } from '../config/config.js';
import { poolSettings } from '../config/pool-settings.js';
import type { ProviderId } from '../contract.js';
import { type PoolOverrides, settingNames } from '../protocol/settings.js';

/** One setting of a provider as it is in force. */
export interface SettingView {
  readonly name: keyof PoolOverrides;
  /** Null where nothing is set: no limit, no model, no fallback. */
  readonly value: unknown;
  /** Whether it is the default, what the environment of this process says, or what operators have set. */
  readonly source: 'default' | 'environment' | 'override';
}

/** All settings of a provider that can be changed, with where each comes from. */
export function viewSettings(config: Config, id: ProviderId, overrides: PoolOverrides): SettingView[] {
  return settingNames.map((name) => {
    const override = overrides[name];
    if (override !== undefined) return { name, value: override, source: 'override' };
    return viewEnvironment(config, id, name);
  });
}

/** The end of the variable's name after that of the provider; the other settings have none. */
const variables: { readonly [Name in keyof PoolOverrides]?: string } = {
  concurrency: 'CONCURRENCY',
  timeoutMs: 'TIMEOUT_MS',
  firstTokenTimeoutMs: 'FIRST_TOKEN_TIMEOUT_MS',
  idleTimeoutMs: 'IDLE_TIMEOUT_MS',
  fallbackAfterMs: 'FALLBACK_AFTER_MS',
  model: 'MODEL',
  models: 'MODELS',
  fallback: 'FALLBACK',
};

function viewEnvironment(config: Config, id: ProviderId, name: keyof PoolOverrides): SettingView {
  const variable = variables[name] && `${id.toUpperCase()}_${variables[name]}`;
  if (variable === undefined || !isVariable(variable)) return { name, value: null, source: 'default' };
  const preset = environmentSchema.shape[variable].safeParse(undefined).data;
  const source = isDeepStrictEqual(config[variable], preset) ? 'default' : 'environment';
  // Where the simulator plays the provider, the models are its own.
  const inForce = { ...poolSettings(config, id), fallback: config[variable] };
  const value = name in inForce ? inForce[name as keyof typeof inForce] : undefined;
  return { name, value: value ?? null, source };
}

const isVariable = (name: string): name is keyof typeof environmentSchema.shape =>
  Object.hasOwn(environmentSchema.shape, name);
