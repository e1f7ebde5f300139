import type { ConnectionOptions } from 'node:tls';
import { authorities, ownCertificate } from './store-certificates.js';
import { StoreUrlError } from './store-url-parts.js';

/** The TLS options of a Redis URL, by PostgreSQL's parameters; certificates are verified in full by default. */
export type RedisTls = Pick<
  ConnectionOptions,
  'ca' | 'cert' | 'key' | 'rejectUnauthorized' | 'checkServerIdentity'
>;

const modes = ['verify-full', 'verify-ca', 'no-verify'] as const;

/** The options for `tls.connect`, undefined for no TLS. Reads the named files. Throws `StoreUrlError`. */
export function redisTlsOf(
  parameters: ReadonlyMap<string, string>,
  isEncrypted: boolean,
): RedisTls | undefined {
  if (!isEncrypted) {
    if (['sslmode', 'sslrootcert', 'sslcert', 'sslkey'].some((name) => parameters.has(name)))
      throw new StoreUrlError(
        'must begin with rediss for TLS: without it sslmode and certificates mean nothing',
      );
    return undefined;
  }
  const mode = modes.find((name) => name === (parameters.get('sslmode') ?? 'verify-full'));
  if (mode === undefined) throw new StoreUrlError(`must have as sslmode one of ${modes.join(', ')}`);
  return {
    ...authorities(parameters.get('sslrootcert')),
    ...ownCertificate(parameters),
    rejectUnauthorized: mode !== 'no-verify',
    // Servers given by address often have a certificate for a name.
    ...(mode === 'verify-ca' && { checkServerIdentity: () => undefined }),
  };
}
