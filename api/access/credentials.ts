import { isUtf8 } from 'node:buffer';
import type { Request } from 'express';

/** The credentials in a request's headers. Malformed ones, and those sent twice, count as not sent. */

/** Enough for a name and a secret of 512 characters in all, four bytes each, in base64. */
const maxHeader = 4096;

/** The text after the scheme, if the header was sent exactly once; Node would silently use the first of several. */
function credentialsOf([header, ...more]: string[], pattern: RegExp): string | undefined {
  if (header === undefined || more.length > 0 || header.length > maxHeader) return undefined;
  return pattern.exec(header)?.[1];
}

/** The access token of these `Authorization` headers (RFC 6750). */
export const parseBearer = (sent: string[]): string | undefined =>
  credentialsOf(sent, /^bearer +([\x21-\x7e]+)$/i);

/** The name and the secret of these `Authorization` headers (RFC 7617, UTF-8). */
export function parseBasic(sent: string[]): { name: string; secret: string } | undefined {
  const encoded = credentialsOf(sent, /^basic +([A-Za-z0-9+/_-]+=*)$/i);
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  const colon = bytes.indexOf(':');
  if (colon < 0 || !isUtf8(bytes)) return undefined;
  return { name: bytes.toString('utf8', 0, colon), secret: bytes.toString('utf8', colon + 1) };
}

/**
 * Lets the value of this header, named in lower case, count as that of `Authorization: Bearer` wherever the request's
 * credentials are checked, now and later. Does nothing where `Authorization` came too.
 */
export function acceptApiKey({ headersDistinct }: Pick<Request, 'headersDistinct'>, header: string): void {
  headersDistinct.authorization ??= headersDistinct[header]?.map((key) => `Bearer ${key}`);
}

/** The cookie of the console's sessions. */
export const sessionCookie = 'quillgate_session';

/** 32 random bytes in base64url. */
const sessionKey = /^[\w-]{43}$/;

/** All keys of sessions in the cookies: another host of the domain may have set a cookie of the same name. */
export function parseSessions({
  headersDistinct: { cookie = [] },
}: Pick<Request, 'headersDistinct'>): string[] {
  const sent = cookie
    .flatMap((header) => header.split(';'))
    .flatMap((pair) => {
      const [name = '', ...value] = pair.split('=');
      return name.trim() === sessionCookie ? [value.join('=').trim()] : [];
    });
  return [...new Set(sent)].filter((key) => sessionKey.test(key));
}
