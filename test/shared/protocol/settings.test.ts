import { describe, expect, it } from 'vitest';
import {
  decodeSettings,
  encodeSettings,
  newOverridesSchema,
  type ProviderSettings,
} from '../../../shared/protocol/settings.js';

const record: ProviderSettings = {
  provider: 'openai',
  version: 3,
  overrides: {
    ...{ concurrency: 40, rate: { max: 60, durationMs: 60_000 } },
    ...{ models: [], fallback: [{ provider: 'anthropic' }] },
  },
  changedAt: '2026-11-22T10:00:00.000Z',
  changedBy: 'ann@host',
};

describe('decodeSettings', () => {
  it('reads what encodeSettings wrote', () => {
    expect(decodeSettings(encodeSettings(record))).toEqual({ ...record, v: 1 });
  });

  it('reads of a later release what it knows, and nothing of another version or shape', () => {
    const text = (changes: object) => JSON.stringify({ v: 1, ...record, ...changes });
    const later = decodeSettings(text({ overrides: { concurrency: 5, colour: 'blue' }, why: 'load' }));
    expect(later).toMatchObject({ version: 3, overrides: { concurrency: 5 } });
    expect(later?.overrides).not.toHaveProperty('colour');
    for (const changes of [
      { v: 5 },
      { v: 0 },
      { version: 0 },
      { provider: 'nobody' },
      { overrides: { concurrency: 0 } },
    ])
      expect(decodeSettings(text(changes))).toBeUndefined();
    for (const other of ['', '{', 'null', '"text"', '[]']) expect(decodeSettings(other)).toBeUndefined();
  });
});

describe('newOverridesSchema', () => {
  it.each([
    [{ concurrency: 0 }, 'concurrency'],
    [{ concurrency: 1.5 }, 'concurrency'],
    [{ concurrency: '4' }, 'concurrency'],
    [{ concurrency: 1e9 }, 'concurrency'],
    [{ concurrency: null }, 'concurrency'],
    [{ globalConcurrency: -1 }, 'globalConcurrency'],
    [{ rate: { max: 1 } }, 'rate.durationMs'],
    [{ rate: { max: 1, durationMs: 1 } }, 'rate.durationMs'],
    [{ intake: 'stopped' }, 'intake'],
    [{ breaker: 'half-open' }, 'breaker'],
    [{ timeoutMs: 99 }, 'timeoutMs'],
    [{ model: '../../etc' }, 'model'],
    [{ models: ['ok', 'a b'] }, 'models.1'],
    [{ fallback: [{ provider: 'nobody' }] }, 'fallback.0.provider'],
    [{ fallback: [{ provider: 'openai' }, { provider: 'openai' }] }, 'fallback'],
    [{ colour: 'blue' }, ''],
    [[], ''],
    ['text', ''],
  ])('refuses %j', (given, path) => {
    expect(newOverridesSchema.safeParse(given).error?.issues[0]?.path.join('.')).toBe(path);
  });
});
