import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { isNewer, version, writtenVersion } from '../../../shared/protocol/version.js';

const schema = z.object({ v: version, text: z.string() });
const written = { v: writtenVersion, text: 'a' };

describe('version', () => {
  it('reads what this release writes, what one before wrote, and what a newer one adds', () => {
    for (const change of [{}, { v: 1 }, { v: 2 }, { v: 3 }, { added: 1 }])
      expect(schema.parse({ ...written, ...change })).toEqual(written);
  });

  it.each([5, 0, -1, 0.5, '1', null, undefined])('refuses version %j', (v) => {
    expect(schema.safeParse({ ...written, v }).success).toBe(false);
  });
});

describe('isNewer', () => {
  it('knows what only a newer release can read, also as JSON text', () => {
    expect(isNewer({ ...written, v: 5 })).toBe(true);
    expect(isNewer('{"v":5,"kind":"unheard of"}')).toBe(true);
  });

  it.each([
    written,
    { v: 1 },
    { text: 'a' },
    { v: '2' },
    null,
    undefined,
    2,
    '2',
    '{',
    JSON.stringify(written),
  ])('does not take %j for newer', (data) => expect(isNewer(data)).toBe(false));
});
