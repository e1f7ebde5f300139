import { describe, expect, it } from 'vitest';
import { formatSetting, settingFields } from '../../../console/pools/setting-fields.ts';

function fieldOf(name: string) {
  const field = settingFields.find((one) => one.name === name);
  if (!field) throw new Error(`no field ${name}`);
  return field;
}

describe('settingFields', () => {
  it.each([
    ['globalConcurrency', 120, '120'],
    ['rate', { max: 100, durationMs: 60_000 }, '100 / 60 s'],
    ['rate', { max: 5, durationMs: 250 }, '5 / 250 ms'],
    ['timeoutMs', 120_000, '2 min'],
    ['idleTimeoutMs', 90_000, '90 s'],
    ['fallbackAfterMs', 1500, '1500 ms'],
    ['models', ['gpt-*', 'o9'], 'gpt-*, o9'],
    [
      'fallback',
      [{ provider: 'anthropic' }, { provider: 'bedrock', model: 'a/b' }],
      'anthropic, bedrock/a/b',
    ],
  ])('write %s as text, and read it back', (name, value, text) => {
    expect(fieldOf(name).format(value)).toBe(text);
    expect(fieldOf(name).parse(text)).toEqual(value);
    expect(formatSetting(name, value)).toBe(text);
  });

  it('read a time in any of its units', () => {
    const read = ['500 ms', '1.5s', ' 2 min ', '1h'].map((text) => fieldOf('timeoutMs').parse(text));
    expect(read).toEqual([500, 1500, 120_000, 3_600_000]);
  });

  it.each([
    ['globalConcurrency', '1.5'],
    ['globalConcurrency', 'many'],
    ['timeoutMs', '60000'],
    ['timeoutMs', '1 d'],
    ['rate', '100'],
    ['rate', '100 / 1 fortnight'],
  ])('refuse %s %s', (name, text) => {
    expect(() => fieldOf(name).parse(text)).toThrow(/^must be/);
  });
});
