import { createHash, timingSafeEqual } from 'node:crypto';
import type { Request } from 'express';
import { Failure } from '../shared/failures.js';

/** Who is asking, once their credentials have been checked. */
export interface User {
  readonly name: string;
}

/** Checks a name and a secret; takes the same time whether the name, the secret or neither is right. */
export type CheckUser = (name: string, secret: string) => User | undefined;

/** A check against one user, who is known from the configuration. */
export function createUserCheck(known: { name: string; secret: string }): CheckUser {
  const expected = digest(known.name, known.secret);
  return (name, secret) =>
    timingSafeEqual(digest(name, secret), expected) ? { name: known.name } : undefined;
}

/**
 * Called by the generated routes before anything of the request is read: HTTP Basic (RFC 7617, UTF-8). The check is
 * the application's own, from `app.locals.checkUser`.
 */
export async function expressAuthentication(request: Request, securityName: string): Promise<User> {
  if (securityName !== 'basic') throw new TypeError('unknown security scheme');
  const checkUser = request.app.locals.checkUser as CheckUser;
  const credentials = parseBasic(request.headers.authorization);
  const user = credentials && checkUser(credentials.name, credentials.secret);
  if (user === undefined) {
    throw new Failure('unauthorized', {
      headers: { 'WWW-Authenticate': 'Basic realm="chat", charset="UTF-8"' },
    });
  }
  return user;
}

function parseBasic(header: string | undefined): { name: string; secret: string } | undefined {
  const encoded = /^basic +([A-Za-z0-9+/_-]+=*) *$/i.exec(header ?? '')?.[1];
  if (encoded === undefined) return undefined;
  const decoded = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = decoded.indexOf(':');
  return colon < 0 ? undefined : { name: decoded.slice(0, colon), secret: decoded.slice(colon + 1) };
}

/** Equal lengths for the comparison; the separator cannot be part of a name. */
const digest = (name: string, secret: string): Buffer =>
  createHash('sha256').update(`${name}:${secret}`, 'utf8').digest();
