import { type ConnectionOptions, checkServerIdentity } from 'node:tls';
import { authorities, ownCertificate } from './store-certificates.js';
import { StoreUrlError } from './store-url-parts.js';

/**
 * The parameters of TLS in a PostgreSQL URL: `sslmode`, `sslrootcert`, `sslcert`, `sslkey`, in libpq's meaning
 * (PostgreSQL's manual, 32.19), with two exceptions. `prefer` means `require`, so that no attacker in between can force
 * plain text. And without a parameter nothing is encrypted, as with every client for Node.
 */

const modes = ['disable', 'prefer', 'require', 'no-verify', 'verify-ca', 'verify-full'] as const;
type Mode = (typeof modes)[number];

/** The options for `tls.connect`, false for no TLS. Reads the named files. Throws `StoreUrlError`. */
export function tlsOptionsOf(
  parameters: ReadonlyMap<string, string>,
  host: string,
): ConnectionOptions | false {
  const mode = modeOf(parameters);
  if (mode === 'disable') return false;
  const root = parameters.get('sslrootcert');
  if (root === 'system' && mode !== 'verify-full')
    throw new StoreUrlError('must have sslmode=verify-full with sslrootcert=system');
  const options = { ...authorities(root), ...ownCertificate(parameters) };
  // libpq verifies whenever it has a root certificate.
  const verifies = mode.startsWith('verify-') || (root !== undefined && mode !== 'no-verify');
  if (!verifies) return { ...options, rejectUnauthorized: false };
  return {
    ...options,
    rejectUnauthorized: true,
    // Set here, because the clients disagree on the expected name of a server that is given by address.
    checkServerIdentity: (_name, certificate) =>
      mode === 'verify-full' ? checkServerIdentity(host, certificate) : undefined,
  };
}

function modeOf(parameters: ReadonlyMap<string, string>): Mode {
  const text = parameters.get('sslmode') ?? modeOfSsl(parameters.get('ssl')) ?? defaultMode(parameters);
  const mode = modes.find((name) => name === text);
  if (mode === undefined) throw new StoreUrlError(`must have as sslmode one of ${modes.join(', ')}`);
  return mode;
}

/** libpq takes `ssl=true`, which is JDBC's, for `sslmode=require`. */
function modeOfSsl(ssl: string | undefined): Mode | undefined {
  if (ssl === undefined) return undefined;
  if (ssl === 'true') return 'require';
  if (ssl === 'false') return 'disable';
  throw new StoreUrlError('must have as ssl true or false; sslmode says more');
}

function defaultMode(parameters: ReadonlyMap<string, string>): Mode {
  if (parameters.get('sslrootcert') === 'system') return 'verify-full';
  return parameters.has('sslrootcert') || parameters.has('sslcert') ? 'prefer' : 'disable';
}
