import type { TokenStore } from '../../db/access/tokens.js';
import type { UserIdentity } from '../../db/access/users.js';
import { digestOf, isAccessToken, sameDigest } from '../../shared/access-token.js';
import type { Scope } from '../../shared/contract.js';
import type { Log } from '../../shared/runtime/log.js';
import type { Caller } from './caller.js';

/** The caller that an access token belongs to; throws `Failure('database_unavailable')`. */
export type TokenAuthenticator = (token: string) => Promise<Caller | undefined>;

/** The user of the environment, with the tokens of the environment, which may have any form. */
export interface FirstUser {
  readonly user: UserIdentity;
  readonly tokens: readonly { readonly token: string | undefined; readonly scopes: readonly Scope[] }[];
}

interface TokenAuthenticatorDeps {
  first: FirstUser | undefined;
  /** The other user of the environment. */
  admin?: UserIdentity | undefined;
  tokens: Pick<TokenStore, 'find' | 'markUsed'>;
  log: Log;
}

/**
 * Checks access tokens. The first user's tokens need no database. All others are looked up for every request, so that
 * revoking one takes effect at once, and by digest, so that the duration of the query reveals nothing about a token.
 */
export function createTokenAuthenticator({
  first,
  admin,
  tokens,
  log,
}: TokenAuthenticatorDeps): TokenAuthenticator {
  const checkFirst = createFirstTokenCheck(first);
  const recordUse = createUseRecorder({ tokens, log });
  return async (token) => {
    const digest = digestOf(token);
    const firstCaller = checkFirst(digest);
    if (firstCaller) return firstCaller;
    if (!isAccessToken(token)) return undefined;
    const grant = await tokens.find(digest);
    if (grant === undefined || !sameDigest(digest, grant.secretHash)) return undefined;
    if (!grant.usedRecently) recordUse(grant.id);
    const { user, scopes } = grant;
    return { ...userOf(user, [first?.user, admin]), scopes };
  };
}

/** A user of the database, who is that of the environment when one there has the name. */
export const userOf = (
  user: UserIdentity,
  ofEnvironment: readonly (UserIdentity | undefined)[],
): UserIdentity => ofEnvironment.find((known) => known?.name === user.name) ?? user;

/** Finds the first user by the digest of a token; one token may have the scopes of several. */
export function createFirstTokenCheck(first: FirstUser | undefined): (digest: Buffer) => Caller | undefined {
  const known = (first?.tokens ?? []).flatMap(({ token, scopes }) =>
    token === undefined ? [] : [{ digest: digestOf(token), scopes }],
  );
  return (given) => {
    const scopes = known.flatMap(({ digest, scopes }) => (sameDigest(given, digest) ? scopes : []));
    return first && scopes.length > 0 ? { ...first.user, scopes } : undefined;
  };
}

/** Records a use in the background: the caller neither waits for it nor fails with it. A burst of uses is recorded once. */
export function createUseRecorder({
  tokens,
  log,
}: {
  tokens: Pick<TokenStore, 'markUsed'>;
  log: Log;
}): (id: string) => void {
  const recording = new Set<string>();
  return (id) => {
    if (recording.has(id)) return;
    recording.add(id);
    tokens
      .markUsed(id)
      .catch((err) => log.warn({ err, token: id }, 'could not record the use of a token'))
      .finally(() => recording.delete(id));
  };
}
