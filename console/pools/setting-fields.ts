import type { PoolSettingsInput } from '../../shared/contracts/fleet-contract.ts';
import { splitList } from '../parts/format.ts';

/** A setting that is written as text: how it is shown and read. */
export interface SettingField {
  readonly name: keyof PoolSettingsInput;
  readonly label: string;
  /** The accepted values, or the meaning of the value. */
  readonly hint: string;
  /** Shown where nothing is set. */
  readonly none: string;
  readonly isNumber?: boolean;
  format(value: unknown): string;
  /** Throws an Error with what is wrong; the server checks the rest. */
  parse(text: string): unknown;
}

const time = { none: 'no limit', format: formatMs, parse: parseMs };

function toNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isSafeInteger(value)) throw new Error('must be a whole number');
  return value;
}

/** The fields of the detail view, in its order; the concurrency of each worker has a slider. */
export const settingFields: readonly SettingField[] = [
  {
    name: 'globalConcurrency',
    label: 'Jobs at once, over all workers',
    hint: '1 to 1,000,000',
    none: 'no limit',
    isNumber: true,
    format: String,
    parse: toNumber,
  },
  {
    name: 'rate',
    label: 'Jobs started per period',
    hint: 'Such as 100 / 60 s',
    none: 'no limit',
    format: formatRate,
    parse: parseRate,
  },
  {
    ...time,
    name: 'timeoutMs',
    label: 'Longest call (90 s, 2 min)',
    hint: 'Streams: time until the first piece',
  },
  {
    ...time,
    name: 'firstTokenTimeoutMs',
    label: 'Longest wait for the first piece (90 s, 2 min)',
    hint: 'Streams only; any sign of life counts',
  },
  {
    ...time,
    name: 'idleTimeoutMs',
    label: 'Longest silence in a stream (90 s, 2 min)',
    hint: 'Until the first piece, the longer of both limits applies',
  },
  {
    ...time,
    name: 'fallbackAfterMs',
    label: 'Ask the fallback after (5 s, 500 ms)',
    hint: 'Streams with a fallback that have not begun to think or write',
    none: 'never',
  },
  {
    name: 'model',
    label: 'Model',
    hint: 'For requests that name none',
    none: 'none',
    format: String,
    parse: (text) => text.trim(),
  },
  {
    name: 'models',
    label: 'Allowed models',
    hint: 'More models, separated by commas; * matches any text',
    none: 'any',
    format: (value) => (value as string[]).join(', '),
    parse: splitList,
  },
  {
    name: 'fallback',
    label: 'Fallback',
    hint: 'Such as anthropic, bedrock/some-model',
    none: 'none',
    format: formatTargets,
    parse: parseTargets,
  },
];

function formatRate(value: unknown): string {
  const { max, durationMs } = value as NonNullable<PoolSettingsInput['rate']>;
  return durationMs % 1000 === 0 ? `${max} / ${durationMs / 1000} s` : `${max} / ${durationMs} ms`;
}

const unitsMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, min: 60_000, h: 3_600_000 };

function parseRate(text: string): unknown {
  const [, max, time, unit = 's'] = /^\s*(\d+)\s*\/\s*(\d*)\s*(ms|s|min|h)?\s*$/.exec(text) ?? [];
  if (max === undefined) throw new Error('must be like 100 / 60 s');
  return { max: Number(max), durationMs: Number(time || 1) * (unitsMs[unit] ?? 1000) };
}

/** Writes milliseconds in the largest unit, of seconds and minutes, that makes a whole number. */
function formatMs(value: unknown): string {
  const ms = Number(value);
  if (ms % 60_000 === 0) return `${ms / 60_000} min`;
  return ms % 1000 === 0 ? `${ms / 1000} s` : `${ms} ms`;
}

function parseMs(text: string): unknown {
  const [, number, unit = ''] = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|min|h)\s*$/.exec(text) ?? [];
  const ms = Math.round(Number(number) * (unitsMs[unit] ?? 1));
  if (number === undefined) throw new Error('must be a time with its unit, such as 90 s or 2 min');
  return ms;
}

function parseTargets(text: string): unknown {
  return splitList(text).map((target) => {
    const [, provider = '', model] = /^([^/]+)(?:\/(.+))?$/.exec(target) ?? [];
    return { provider, ...(model && { model }) };
  });
}

function formatTargets(value: unknown): string {
  const targets = value as NonNullable<PoolSettingsInput['fallback']>;
  return targets.map(({ provider, model }) => (model ? `${provider}/${model}` : provider)).join(', ');
}

/** The name of a value of any setting. */
export function formatSetting(name: string, value: unknown): string {
  const field = settingFields.find((one) => one.name === name);
  if (value === null || value === undefined) return field?.none ?? 'not set';
  return (field?.format(value) ?? String(value)) || (field?.none ?? 'none');
}

const labels: Readonly<Record<string, string>> = {
  concurrency: 'Jobs at once, in each worker',
  intake: 'Intake',
  breaker: 'Breaker',
};

export const labelOf = (name: string): string =>
  settingFields.find((one) => one.name === name)?.label ?? labels[name] ?? name;
