import { z } from 'zod';
import { type ProviderId, providerIds } from '../contracts/contract.js';
import { modelName, modelPattern } from '../models/model-names.js';
import { jsonText } from './json-text.js';
import { version, writtenVersion } from './version.js';

/** The operators' settings for a running provider: the record in the queue's store, and the message. */

const provider = z.enum(providerIds, { error: `must be one of: ${providerIds.join(', ')}` });
function whole(least: number, most: number) {
  const error = `must be a whole number from ${least} to ${most}`;
  return z.int({ error }).min(least, { error }).max(most, { error });
}
const milliseconds = whole(100, 3_600_000);
const model = z.string().regex(modelName, 'must be the name of a model');
const pattern = z.string().regex(modelPattern, 'must be the name of a model, in which * matches any text');

/** The same limit as in shared/config: a caller does not wait for more than this many, one after another. */
const maxFallback = 4;

const maxModels = 50;

/** The settings that can be changed; see `PoolSettingsInput`. Each replaces what the environment says. */
const overrides = {
  concurrency: whole(1, 10_000).exactOptional(),
  globalConcurrency: whole(1, 1_000_000).exactOptional(),
  rate: z.strictObject({ max: whole(1, 1_000_000), durationMs: whole(100, 86_400_000) }).exactOptional(),
  intake: z.enum(['paused', 'draining'], { error: 'must be paused or draining' }).exactOptional(),
  breaker: z.enum(['open', 'closed'], { error: 'must be open or closed' }).exactOptional(),
  timeoutMs: milliseconds.exactOptional(),
  firstTokenTimeoutMs: milliseconds.exactOptional(),
  idleTimeoutMs: milliseconds.exactOptional(),
  fallbackAfterMs: milliseconds.exactOptional(),
  model: model.exactOptional(),
  models: z
    .array(pattern)
    .max(maxModels, { error: `must have at most ${maxModels} models` })
    .exactOptional(),
  fallback: z
    .array(z.strictObject({ provider, model: model.exactOptional() }))
    .max(maxFallback, { error: `must name at most ${maxFallback} providers` })
    .refine((targets) => new Set(targets.map((one) => JSON.stringify(one))).size === targets.length, {
      error: 'must name each only once',
    })
    .exactOptional(),
};

/** The settings that operators may make, and no others. */
export const newOverridesSchema = z.strictObject(overrides);

export type PoolOverrides = z.output<typeof newOverridesSchema>;

/** The names of all settings that can be changed. */
export const settingNames = Object.keys(overrides) as (keyof PoolOverrides)[];

/** The worker's environment as its heartbeat has it. */
export const configuredSchema = z
  .object({
    concurrency: z.number(),
    timeoutMs: z.number(),
    firstTokenTimeoutMs: z.number(),
    idleTimeoutMs: z.number(),
    fallbackAfterMs: z.number(),
    model: z.string().max(300),
    models: z.array(z.string().max(300)).max(maxModels),
  })
  .partial();

export type ConfiguredSettings = z.output<typeof configuredSchema>;

/** The operators' settings for a provider after one change. */
export const providerSettingsSchema = z.object({
  provider,
  /** Grows with each change. */
  version: z.int().positive(),
  /** A newer release may have others, which are ignored. */
  overrides: z.object(overrides),
  /** RFC 3339 in UTC. */
  changedAt: z.string(),
  changedBy: z.string(),
});

/** The operators' settings of one provider. */
export type ProviderSettings = z.output<typeof providerSettingsSchema>;

/** The settings as a record has them, and a message. */
export const settingsRecordSchema = providerSettingsSchema.extend({ v: version });

export type SettingsRecord = z.output<typeof settingsRecordSchema>;

/** The record as text; `decodeSettings` reads it back. */
export const encodeSettings = (settings: ProviderSettings): string =>
  JSON.stringify({ ...settings, v: writtenVersion });

/** Undefined where there is no record, or one that this release cannot read. */
export const decodeSettings = (text: string | undefined): ProviderSettings | undefined =>
  jsonText(settingsRecordSchema).safeParse(text).data;

/** Where a provider's settings are recorded. */
export const settingsKey = (id: ProviderId): string => `settings.${id}`;
