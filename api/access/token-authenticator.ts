import type { TokenStore } from '../../db/access/tokens.js';
import type { UserIdentity } from '../../db/access/users.js';
import { digestOf, isAccessToken, sameDigest } from '../../shared/access-token.js';
import type { Scope } from '../../shared/contract.js';
import type { Log } from '../../shared/runtime/log.js';
import type { Caller } from './authentication.js';

/** Gives whom an access token stands for; throws `Failure('database_unavailable')`. */
export type TokenAuthenticator = (token: string) => Promise<Caller | undefined>;

interface TokenCheckDeps {
  /** The user of the environment, and the token of any form that it names, if it does. */
  first: { user: UserIdentity; token: string | undefined } | undefined;
  tokens: Pick<TokenStore, 'find' | 'markUsed'>;
  log: Log;
}

/**
 * Checks access tokens. The first one needs no database; the others are looked up at every request, so that
 * revoking one is effective at once, and by their digest, so that the time of the search tells nothing about a token.
 */
export function createTokenAuthenticator({ first, tokens, log }: TokenCheckDeps): TokenAuthenticator {
  const known = first?.token ? digestOf(first.token) : undefined;
  const recordUse = createUseNote({ tokens, log });
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

/** Notes a use in the background: the caller neither waits for it nor fails with it. A burst of uses is noted once. */
function createUseNote({ tokens, log }: Pick<TokenCheckDeps, 'tokens' | 'log'>): (id: string) => void {
  const underWay = new Set<string>();
  return (id) => {
    if (underWay.has(id)) return;
    underWay.add(id);
    tokens
      .markUsed(id)
      .catch((err) => log.warn({ err, token: id }, 'could not note the use of a token'))
      .finally(() => underWay.delete(id));
  };
}
