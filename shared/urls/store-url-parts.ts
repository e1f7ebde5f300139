import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type ConnectionOptions, createSecureContext, getCACertificates } from 'node:tls';

/** Thrown for an invalid URL of a store; the message may name parameters, but never quotes a value. */
export class StoreUrlError extends Error {
  override readonly name = 'StoreUrlError';
}

/** Parsing that the URLs of all stores share. Each function throws `StoreUrlError`. */

/** The parameters of a query (`?name=value&…`), decoded; a later one wins. */
export function parametersOf(search: string): ReadonlyMap<string, string> {
  const pairs = search
    .slice(1)
    .split('&')
    .filter((pair) => pair !== '');
  return new Map(
    pairs.map((pair) => {
      const [name = '', ...value] = pair.split('=');
      return [decodePart(name), decodePart(value.join('='))];
    }),
  );
}

/** Undoes percent-encoding. */
export function decodePart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new StoreUrlError('has a % that does not begin a percent-encoded character');
  }
}

/** Parses a port number from 1 to 65535. */
export function readPort(text: string): number {
  if (/^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new StoreUrlError('must have a port from 1 to 65535');
}

/** Throws for unsupported parameters, if there are any, with their names. */
export function refuseParameters(names: readonly string[]): void {
  if (names.length === 0) return;
  const shown = names.map((name) => (/^\w{1,40}$/.test(name) ? name : 'one with an odd name'));
  throw new StoreUrlError(`has parameters that are not supported: ${shown.join(', ')}`);
}

/** Reads the certificates that the URL of a store names; all readers throw `StoreUrlError`. */

/** The trusted authorities, from `sslrootcert`; by default those of Node, with NODE_EXTRA_CA_CERTS. */
export function authorities(root: string | undefined): Pick<ConnectionOptions, 'ca'> {
  if (root === undefined) return {};
  if (root === 'system') return { ca: [...getCACertificates('default'), ...getCACertificates('system')] };
  const ca = read('sslrootcert', root);
  parse(() => new X509Certificate(ca), 'names as sslrootcert what is no certificate');
  return { ca };
}

/** Our certificate for servers that ask for one, from `sslcert` and `sslkey`. */
export function ownCertificate(
  parameters: ReadonlyMap<string, string>,
): Pick<ConnectionOptions, 'cert' | 'key'> {
  const [certFile, keyFile] = [parameters.get('sslcert'), parameters.get('sslkey')];
  if (certFile === undefined && keyFile === undefined) return {};
  if (certFile === undefined || keyFile === undefined)
    throw new StoreUrlError('must have sslcert and sslkey together');
  const own = { cert: read('sslcert', certFile), key: read('sslkey', keyFile) };
  parse(() => createSecureContext(own), 'must name as sslcert and sslkey a certificate and its own key');
  return own;
}

/** Whether OpenSSL or Node use this error code for a server certificate that they do not trust. */
export const isCertificateError = (code: string): boolean =>
  /CERT|^(UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA)/.test(code);

function read(parameter: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new StoreUrlError(
      `names as ${parameter} a file that cannot be read (${(error as NodeJS.ErrnoException).code})`,
    );
  }
}

function parse(work: () => unknown, complaint: string): void {
  try {
    work();
  } catch {
    throw new StoreUrlError(complaint);
  }
}
