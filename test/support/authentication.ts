import type { SignedIn } from '../../api/access/caller.js';
import type { Authentication } from '../../api/access/login.js';
import { LoginLimiter } from '../../api/access/login-limiter.js';
import type { Log } from '../../shared/runtime/log.js';
import { userNamed } from './identities.js';

type Directory = Authentication['directory'];

/** Users may be loaded later. */
type OpenedLater = Authentication & {
  readonly directory: { -readonly [Part in keyof Directory]: Directory[Part] };
};

/** The differences from one that knows no credentials. */
export interface AuthenticationOptions extends Partial<Omit<Authentication, 'directory' | 'log'>> {
  directory?: Partial<Directory>;
}

export const createAuthentication = (
  log: Log,
  { directory, ...others }: AuthenticationOptions = {},
): OpenedLater => ({
  directory: {
    checkUser: () => undefined,
    hasUser: () => false,
    isSuspended: () => false,
    loaded: true,
    checkToken: () => undefined,
    findToken: async () => undefined,
    checkSession: () => undefined,
    findSession: async () => undefined,
    reloadShared: async () => undefined,
    onLoad: () => () => undefined,
    ...directory,
  },
  loginLimiter: new LoginLimiter(),
  earlyLimiter: new LoginLimiter(),
  log,
  publicReads: true,
  ...others,
});

export const signedInAs = (name: string, { isOperator = false } = {}): SignedIn => ({
  user: userNamed(name),
  isOperator,
  secretHash: undefined,
});
