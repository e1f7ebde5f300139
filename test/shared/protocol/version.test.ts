import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { isNewer, version, writtenVersion } from '../../../shared/protocol/version.js';

const schema = z.object({ v: version, text: z.string() });
const written = { v: writtenVersion, text: 'a' };

describe('version', () => {
  it('reads what this release writes, what the one before wrote, and what a newer one adds to a version', () => {
    for (const change of [{}, { v: 0 }, { added: 1 }])
      expect(schema.parse({ ...written, ...change })).toEqual(written);
  });

  it.each([2, -1, 0.5, '1', null, undefined])('refuses version %j', (v) => {
    expect(schema.safeParse({ ...written, v }).success).toBe(false);
  });
});

describe('isNewer', () => {
  it('knows what only a newer release can read, also as JSON text', () => {
    expect(isNewer({ ...written, v: 2 })).toBe(true);
    expect(isNewer('{"v":2,"kind":"unheard of"}')).toBe(true);
  });

  it.each([written, { text: 'a' }, { v: '2' }, null, undefined, 2, '2', '{', JSON.stringify(written)])(
    'does not take %j for newer',
    (data) => expect(isNewer(data)).toBe(false),
  );
});
