import { hash, randomInt, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { z } from 'zod';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 32 characters out of 62 are 190 bits. */
const randomLength = 32;
/** 62⁶ > 2³². */
const checksumLength = 6;
const prefix = 'qg_';

/** A new access token: `qg_`, 32 random base62 characters, and a checksum for scanners. */
export function makeAccessToken(): string {
  const payload = prefix + randomBase62();
  return payload + checksumOf(payload);
}

/** Whether the text looks like a token of `makeAccessToken` and its checksum is right; no proof that it was issued. */
export function isAccessToken(text: string): boolean {
  if (!/^qg_[0-9A-Za-z]{38}$/.test(text)) return false;
  return text.endsWith(checksumOf(text.slice(0, -checksumLength)));
}

/** A new secret of a chat user: 32 random base62 characters. */
export const makeUserSecret = (): string => randomBase62();

/** SHA-256 of a secret in UTF-8, as it is stored: our secrets are too long to guess, so a slow hash gains nothing. */
export const digestOf = (secret: string): Buffer => hash('sha256', secret, 'buffer');

/** Compares two digests in constant time. */
export const sameDigest = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);

/** `randomInt` rejects values that would favour some characters. */
const randomBase62 = (): string =>
  Array.from({ length: randomLength }, () => alphabet.charAt(randomInt(alphabet.length))).join('');

function checksumOf(payload: string): string {
  let digits = '';
  for (let rest = crc32(payload); digits.length < checksumLength; rest = Math.floor(rest / alphabet.length))
    digits = alphabet.charAt(rest % alphabet.length) + digits;
  return digits;
}

/** The form of a user's name: in HTTP Basic a colon ends it (RFC 7617). */
export const userName = z
  .string()
  .min(1, { error: 'must not be empty' })
  .max(128, { error: 'must be at most 128 characters' })
  .regex(/^[^:\p{Cc}]*$/u, 'must not contain a colon or control characters');

/** The form of an access token's name. */
export const tokenName = z
  .string()
  .min(1, { error: 'must not be empty' })
  .max(64, { error: 'must be at most 64 characters' })
  .regex(/^\P{Cc}*$/u, 'must not contain control characters');
