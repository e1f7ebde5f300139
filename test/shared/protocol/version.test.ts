import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { isNewer, version, writtenVersion } from '../../../shared/protocol/version.js';

const schema = z.object({ v: version, text: z.string() });
const written = { v: writtenVersion, text: 'a' };

describe('version', () => {
  it('reads what this release writes, and what the one before wrote as if it were of this one', () => {
    expect(schema.parse(written)).toEqual(written);
    expect(schema.parse({ ...written, v: 0 })).toEqual(written);
  });

  it('ignores what a newer release adds to a version', () => {
    expect(schema.parse({ ...written, added: 1 })).toEqual(written);
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
