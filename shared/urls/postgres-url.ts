import { type ConnectionOptions, checkServerIdentity } from 'node:tls';
import { givenFields } from '../json/json.js';
import {
  authorities,
  decodePart,
  ownCertificate,
  parametersOf,
  readPort,
  refuseParameters,
  StoreUrlError,
} from './store-url-parts.js';

/**
 * The only parser of `DATABASE_URL`. Our two clients parse the same URL differently, and take unknown parameters for
 * settings of the session that precede ours; so they get the result of this parser instead. The parameters are those of
 * libpq (PostgreSQL's manual, 32.1.2).
 */

/** Where a PostgreSQL server is and how to talk to it, in names that pg and postgres.js share. */
export interface PostgresAddress {
  /** A name, an address, or the folder of a Unix socket. */
  host: string;
  port: number;
  user?: string;
  password?: string;
  database?: string;
  /** For `tls.connect`; false: not encrypted. */
  ssl: ConnectionOptions | false;
}

/** Parses a `postgres://` URL and reads the certificates that it names. Throws `StoreUrlError`. */
export function parsePostgresUrl(text: string): PostgresAddress {
  const url = readUrl(text);
  const parameters = parametersOf(url.search);
  refuseUnsupported(parameters);
  const host = parameters.get('host') || decodePart(url.hostname).replace(/^\[|\]$/g, '') || 'localhost';
  if (host.includes(',')) throw new StoreUrlError('must name one host alone');
  const user = parameters.get('user') || decodePart(url.username) || undefined;
  const password = parameters.get('password') || decodePart(url.password) || undefined;
  const database = parameters.get('dbname') || decodePart(url.pathname.slice(1)) || undefined;
  return {
    host,
    port: readPort(parameters.get('port') || url.port || '5432'),
    ...givenFields({ user, password, database }),
    // A Unix socket is not encrypted, as in libpq.
    ssl: host.startsWith('/') ? false : tlsOptionsOf(parameters, host),
  };
}

function readUrl(text: string): URL {
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text))
    throw new StoreUrlError('must be a postgres:// URL');
  const url = new URL(text);
  // The parameters can be the end of a password then, so not even their names may be shown.
  if (/[@#]/.test(url.pathname + url.search + url.hash))
    throw new StoreUrlError('must have the characters @ / ? # percent-encoded in user and password');
  return url;
}

const supported = new Set('host port user password dbname sslmode ssl sslrootcert sslcert sslkey'.split(' '));

/** Parameters that are ignored with any value: we never do so, or have our own limit. */
const ignored = new Set(
  [
    'application_name channel_binding connect_timeout fallback_application_name keepalives keepalives_count',
    'keepalives_idle keepalives_interval sslcompression sslnegotiation sslsni tcp_user_timeout uselibpqcompat',
  ].flatMap((line) => line.split(' ')),
);

/** Parameters that are ignored when they have such a value, because we do so anyway. */
const harmless = new Map([
  ['client_encoding', /^(auto|utf-?8)$/i],
  ['gssencmode', /^(disable|prefer)$/],
  ['schema', /^public$/],
  ['target_session_attrs', /^(any|read-write|primary)$/],
]);

function refuseUnsupported(parameters: ReadonlyMap<string, string>): void {
  const refused = [...parameters].filter(
    ([name, value]) => !supported.has(name) && !ignored.has(name) && !harmless.get(name)?.test(value),
  );
  refuseParameters(refused.map(([name]) => name));
}

/**
 * The parameters of TLS in a PostgreSQL URL: `sslmode`, `sslrootcert`, `sslcert`, `sslkey`, in libpq's meaning
 * (PostgreSQL's manual, 32.19), with two exceptions. `prefer` means `require`, so that no attacker in between can force
 * plain text. And without a parameter nothing is encrypted, as with every client for Node.
 */

const modes = ['disable', 'prefer', 'require', 'no-verify', 'verify-ca', 'verify-full'] as const;
type Mode = (typeof modes)[number];

/** The options for `tls.connect`, false for no TLS. Reads the named files. Throws `StoreUrlError`. */
function tlsOptionsOf(parameters: ReadonlyMap<string, string>, host: string): ConnectionOptions | false {
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
