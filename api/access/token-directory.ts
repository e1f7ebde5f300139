import type { ActiveToken, TokenStore } from '../../db/access/tokens.js';
import type { UserIdentity } from '../../db/access/users.js';
import { digestOf, isAccessToken, sameDigest } from '../../shared/access-token.js';
import type { Log } from '../../shared/runtime/log.js';
import type { Caller } from './caller.js';
import { createFirstTokenCheck, createUseRecorder, type FirstUser, userOf } from './token-authenticator.js';

interface TokenDirectoryDeps {
  first: FirstUser | undefined;
  /** The other user of the environment. */
  admin?: UserIdentity | undefined;
  tokens: Pick<TokenStore, 'listActive' | 'markUsed'>;
  log: Log;
  /** A clock that is never set, in milliseconds. */
  now?: () => number;
}

interface Entry extends Omit<ActiveToken, 'expiresInMs'> {
  /** By the clock of the directory. */
  readonly expiresAt: number;
}

const recordUseEveryMs = 60_000;

/**
 * The access tokens, in memory, so that chat works without the database. By digest, so that the duration of a search reveals nothing
 * about a token. `UserDirectory` has them loaded with the users.
 */
export class TokenDirectory {
  readonly #deps: Pick<TokenDirectoryDeps, 'first' | 'admin' | 'tokens'>;
  readonly #checkFirst: (digest: Buffer) => Caller | undefined;
  readonly #recordUse: (id: string) => void;
  readonly #now: () => number;
  #entries: ReadonlyMap<string, Entry> = new Map();
  /** When this process last recorded a use, by the id of the token. */
  readonly #recordedAt = new Map<string, number>();

  constructor({ first, admin, tokens, log, now = () => performance.now() }: TokenDirectoryDeps) {
    this.#deps = { first, admin, tokens };
    this.#checkFirst = createFirstTokenCheck(first);
    this.#recordUse = createUseRecorder({ tokens, log });
    this.#now = now;
  }

  /** Reads the tokens of the database; throws `Failure('database_unavailable')`, and then knows those it knew. */
  async load(): Promise<void> {
    const readAt = this.#now();
    const tokens = await this.#deps.tokens.listActive();
    const toEntry = ({ expiresInMs, ...token }: ActiveToken): [string, Entry] => {
      const expiresAt = readAt + (expiresInMs ?? Number.POSITIVE_INFINITY);
      return [keyOf(token.secretHash), { ...token, expiresAt }];
    };
    this.#entries = new Map(tokens.map(toEntry));
    const ids = new Set(tokens.map(({ id }) => id));
    for (const id of this.#recordedAt.keys()) if (!ids.has(id)) this.#recordedAt.delete(id);
  }

  /** The caller that the token belongs to; undefined when it is unknown, revoked or expired. */
  check(token: string): Caller | undefined {
    const digest = digestOf(token);
    return this.#checkFirst(digest) ?? (isAccessToken(token) ? this.#find(digest) : undefined);
  }

  #find(digest: Buffer): Caller | undefined {
    const entry = this.#entries.get(keyOf(digest));
    const now = this.#now();
    if (entry === undefined || !sameDigest(digest, entry.secretHash) || now >= entry.expiresAt)
      return undefined;
    const { id, user, scopes } = entry;
    const { first, admin } = this.#deps;
    if (now - (this.#recordedAt.get(id) ?? Number.NEGATIVE_INFINITY) >= recordUseEveryMs) {
      this.#recordedAt.set(id, now);
      this.#recordUse(id);
    }
    return { ...userOf(user, [first?.user, admin]), scopes };
  }
}

const keyOf = (digest: Buffer): string => digest.toString('base64');
