import type { TokenStore } from '../../db/access/tokens.js';
import type { UserIdentity } from '../../db/access/users.js';
import { digestOf, isAccessToken, sameDigest } from '../../shared/access-token.js';
import type { Scope } from '../../shared/contract.js';
import type { Log } from '../../shared/runtime/log.js';
import type { Caller } from './authentication.js';

/** The caller that an access token belongs to; throws `Failure('database_unavailable')`. */
export type TokenAuthenticator = (token: string) => Promise<Caller | undefined>;

interface TokenAuthenticatorDeps {
  /** The user of the environment, and its token, which may have any form. */
  first: { user: UserIdentity; token: string | undefined } | undefined;
  tokens: Pick<TokenStore, 'find' | 'markUsed'>;
  log: Log;
}

/**
 * Checks access tokens. The first user's token needs no database. All others are looked up for every request, so that
 * revoking one takes effect at once, and by digest, so that the duration of the query reveals nothing about a token.
 */
export function createTokenAuthenticator({ first, tokens, log }: TokenAuthenticatorDeps): TokenAuthenticator {
  const known = first?.token ? digestOf(first.token) : undefined;
  const recordUse = createUseRecorder({ tokens, log });
  return async (token) => {
    const digest = digestOf(token);
    if (first && known && sameDigest(digest, known)) return { ...first.user, scopes: firstScopes };
    if (!isAccessToken(token)) return undefined;
    const grant = await tokens.find(digest);
    if (grant === undefined || !sameDigest(digest, grant.secretHash)) return undefined;
    if (!grant.usedRecently) recordUse(grant.id);
    const { user, scopes } = grant;
    return { ...(user.name === first?.user.name ? first.user : user), scopes };
  };
}

const firstScopes: readonly Scope[] = ['blogs:write', 'blogs:read'];

/** Records a use in the background: the caller neither waits for it nor fails with it. A burst of uses is recorded once. */
function createUseRecorder({
  tokens,
  log,
}: Pick<TokenAuthenticatorDeps, 'tokens' | 'log'>): (id: string) => void {
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
