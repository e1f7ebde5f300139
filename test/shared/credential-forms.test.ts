import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  digestOf,
  isAccessToken,
  makeAccessToken,
  makeUserSecret,
  sameDigest,
} from '../../shared/credential-forms.js';

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** How often each character of base62 occurs. */
function countCharacters(text: string): number[] {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  expect([...counts.keys()].every((character) => base62.includes(character))).toBe(true);
  return [...base62].map((character) => counts.get(character) ?? 0);
}

describe('makeAccessToken', () => {
  it('makes tokens of the documented form, each another', () => {
    const tokens = Array.from({ length: 1000 }, makeAccessToken);
    for (const token of tokens) expect(token).toMatch(/^qg_[0-9A-Za-z]{38}$/);
    expect(tokens.every(isAccessToken)).toBe(true);
    expect(new Set(tokens).size).toBe(tokens.length);
  });

  it('favours no character', () => {
    const tokens = Array.from({ length: 4000 }, makeAccessToken);
    const counts = countCharacters(tokens.map((token) => token.slice(3, 35)).join(''));
    const expected = (4000 * 32) / 62;
    // Six standard deviations: by chance alone once in some ten million runs.
    for (const count of counts) expect(Math.abs(count - expected)).toBeLessThan(6 * Math.sqrt(expected));
  });
});

describe('isAccessToken', () => {
  it.each([
    // Checksums worked out by another implementation of CRC-32.
    'qg_000000000000000000000000000000002a9pfG',
    'qg_abcdefghijklmnopqrstuvwxyzABCDEF1P2P72',
    'qg_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz40xqm0',
  ])('knows %s', (token) => {
    expect(isAccessToken(token)).toBe(true);
  });

  it('refuses a token with one character changed', () => {
    const token = makeAccessToken();
    const place = fc.nat(token.length - 1);
    const character = fc.oneof(fc.constantFrom(...base62), fc.string({ minLength: 1, maxLength: 1 }));
    fc.assert(
      fc.property(place, character, (at, other) => {
        const changed = token.slice(0, at) + other + token.slice(at + 1);
        expect(isAccessToken(changed)).toBe(changed === token);
      }),
      { numRuns: 500 },
    );
  });

  it('refuses a token with two neighbours swapped', () => {
    const token = makeAccessToken();
    for (let at = 0; at + 1 < token.length; at++) {
      const swapped = token.slice(0, at) + token.charAt(at + 1) + token.charAt(at) + token.slice(at + 2);
      expect(isAccessToken(swapped)).toBe(swapped === token);
    }
  });

  it('refuses what stands before or after a token', () => {
    const token = makeAccessToken();
    for (const text of [
      '',
      ` ${token}`,
      `${token} `,
      `${token}\n`,
      `${token}0`,
      token.toLowerCase(),
      `x${token}`,
    ])
      expect(isAccessToken(text)).toBe(false);
  });
});

describe('makeUserSecret', () => {
  it('makes 32 characters of base62, each time others', () => {
    const secrets = Array.from({ length: 100 }, makeUserSecret);
    for (const secret of secrets) expect(secret).toMatch(/^[0-9A-Za-z]{32}$/);
    expect(new Set(secrets).size).toBe(secrets.length);
  });
});

describe('digestOf', () => {
  it('is the SHA-256 of the text in UTF-8', () => {
    expect(digestOf('abc').toString('hex')).toBe(
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    );
    expect(digestOf('Zoë 🎉')).toEqual(createHash('sha256').update(Buffer.from('Zoë 🎉')).digest());
  });
});

describe('sameDigest', () => {
  it('tells equal digests from others', () => {
    expect(sameDigest(digestOf('a'), digestOf('a'))).toBe(true);
    expect(sameDigest(digestOf('a'), digestOf('b'))).toBe(false);
    expect(sameDigest(digestOf('a'), digestOf('a').subarray(1))).toBe(false);
  });
});
