import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ConfigError, parseConfig } from '../../../shared/config/config.js';
import { parsePostgresUrl } from '../../../shared/urls/postgres-url.js';
import { StoreUrlError } from '../../../shared/urls/store-url-parts.js';
import { makeAuthority } from '../../support/certificates.js';

const folder = mkdtempSync(join(tmpdir(), 'quillgate-url-'));
const file = (name: string, content: string) => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};
let root: string;
let rootPem: string;
let own: { cert: string; key: string; other: string };
beforeAll(() => {
  const authority = makeAuthority();
  rootPem = authority.certificate;
  root = file('root.crt', rootPem);
  const { certificate, key } = authority.issue('client');
  own = {
    cert: file('own.crt', certificate),
    key: file('own.key', key),
    other: file('other.key', authority.issue('other').key),
  };
});
afterAll(() => rmSync(folder, { recursive: true }));

const at = (query: string) => parsePostgresUrl(`postgres://db.example/blog${query}`);
const plain = { host: 'db.example', port: 5432, database: 'blog', ssl: false };

/** The error of the URL, the same as of DATABASE_URL. */
function complaintOf(url: string): string {
  expect(() => parsePostgresUrl(url)).toThrow(StoreUrlError);
  try {
    parseConfig({ DATABASE_URL: url }, 'config');
  } catch (error) {
    const [problem, ...more] = error instanceof ConfigError ? error.problems : [];
    expect(more).toEqual([]);
    return /^DATABASE_URL: (.*)$/.exec(problem ?? '')?.[1] ?? '';
  }
  return 'taken';
}

describe('parsePostgresUrl', () => {
  it.each([
    ['postgres://db.example/blog', plain],
    ['postgresql://db.example/blog', plain],
    ['postgres://u:p@db.example:6543/blog', { ...plain, port: 6543, user: 'u', password: 'p' }],
    ['postgres://', { host: 'localhost', port: 5432, ssl: false }],
    ['postgres:///blog', { ...plain, host: 'localhost' }],
    ['postgres://[::1]:1/blog', { ...plain, host: '::1', port: 1 }],
    ['postgres://%2Fvar%2Frun/blog?sslmode=verify-full', { ...plain, host: '/var/run' }],
    ['postgres:///blog?host=/var/run&port=1', { ...plain, host: '/var/run', port: 1 }],
    [
      'postgres://x@y/z?host=db.example&user=u&password=p&dbname=blog',
      { ...plain, user: 'u', password: 'p' },
    ],
  ])('reads %s', (url, address) => {
    expect(parsePostgresUrl(url)).toEqual(address);
  });

  it('decodes what is percent-encoded', () => {
    const secret = 'p@ss:/?#[]%&=+ é😀';
    const url = `postgres://${encodeURIComponent('us@er')}:${encodeURIComponent(secret)}@db.example/bl%2Fog`;

    expect(parsePostgresUrl(url)).toMatchObject({ user: 'us@er', password: secret, database: 'bl/og' });
    expect(at(`?password=${encodeURIComponent(secret)}`)).toMatchObject({ password: secret });
    expect(at('?password=a+b')).toMatchObject({ password: 'a+b' });
  });

  it('leaves out what does no harm', () => {
    const query =
      '?uselibpqcompat=true&channel_binding=require&keepalives=1&keepalives_idle=30&connect_timeout=10' +
      '&application_name=x&target_session_attrs=read-write&gssencmode=disable&client_encoding=utf8&schema=public';

    expect(at(query)).toEqual(plain);
    expect(at('?&sslmode=require&&sslmode=disable&')).toEqual(plain);
  });

  it.each([
    'options=-c%20canary',
    'statement_timeout=0',
    'search_path=canary',
    'schema=canary',
    'pgbouncer=true',
    'connection_limit=5',
    'target_session_attrs=standby',
    'gssencmode=require',
    'sslcrl=canary',
    'max=1',
    '__proto__=canary',
  ])('refuses %s, by its name alone', (parameter) => {
    expect(complaintOf(`postgres://db.example/blog?${parameter}`)).toBe(
      `has parameters that are not supported: ${parameter.split('=')[0]}`,
    );
  });

  it('names every parameter that it does not support', () => {
    expect(complaintOf('postgres://db.example/blog?a=canary&sslmode=require&b&c%20=')).toBe(
      'has parameters that are not supported: a, b, one with an odd name',
    );
  });

  it.each([
    ['mysql://canary', 'must be a postgres:// URL'],
    ['canary', 'must be a postgres:// URL'],
    ['postgres:canary', 'must be a postgres:// URL'],
    ['postgres://u:canary/x@db.example/blog', 'must be a postgres:// URL'],
    ['postgres://a:1,b:2/canary', 'must be a postgres:// URL'],
    ['postgres://a,b/canary', 'must name one host alone'],
    ['postgres:///x?host=a,b', 'must name one host alone'],
    ['postgres:///x?port=canary', 'must have a port from 1 to 65535'],
    ['postgres:///x?port=65536', 'must have a port from 1 to 65535'],
    ['postgres://h:0/x', 'must have a port from 1 to 65535'],
    ['postgres://u:canary%zz@h/x', 'has a % that does not begin a percent-encoded character'],
    ['postgres://h/x?password=canary%', 'has a % that does not begin a percent-encoded character'],
  ])('refuses %s', (url, complaint) => {
    expect(complaintOf(url)).toBe(complaint);
  });

  // Each is a password that ends with canary, and a URL in which a part of it stands for something else.
  it.each(['12?canary', '12?canary=', '12#canary', '12/canary', 'p@ss?canary=canary'])(
    'tells nothing of a password that is not encoded: %s',
    (password) => {
      expect(complaintOf(`postgres://u:${password}@db.example/blog`)).toBe(
        'must have the characters @ / ? # percent-encoded in user and password',
      );
    },
  );
});

describe('parsePostgresUrl, about TLS', () => {
  const ssl = (query: string) => at(query).ssl;
  const unverified = { rejectUnauthorized: false };
  const verified = { rejectUnauthorized: true, checkServerIdentity: expect.any(Function) };

  // Without an authority, and with one by sslrootcert: it is the only one trusted, and has servers verified.
  it.each([
    ['', false, verified],
    ['&sslmode=disable', false, false],
    ['&ssl=false', false, false],
    ['&sslmode=prefer', unverified, verified],
    ['&sslmode=require', unverified, verified],
    ['&ssl=true', unverified, verified],
    ['&sslmode=no-verify', unverified, unverified],
    ['&sslmode=verify-ca', verified, verified],
    ['&sslmode=verify-full', verified, verified],
    ['&sslmode=verify-full&ssl=false', verified, verified],
  ])('reads %j', (query, expected, withAuthority) => {
    expect(ssl(`?${query}`)).toEqual(expected);
    const ca = Buffer.from(rootPem);
    expect(ssl(`?sslrootcert=${root}${query}`)).toEqual(
      withAuthority && Object.assign({ ca }, withAuthority),
    );
  });

  it('looks at the name of the server in verify-full alone', () => {
    const check = (mode: string) => {
      const options = ssl(`?sslmode=${mode}`);
      const certificate = { subject: { CN: 'other.example' }, subjectaltname: 'DNS:other.example' };
      return options ? options.checkServerIdentity?.('other.example', certificate as never) : 'no TLS';
    };

    expect(check('verify-full')).toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
    expect(check('verify-ca')).toBeUndefined();
  });

  it('adds the authorities of the system to those of Node', () => {
    const ca = expect.arrayContaining(getCACertificates('default'));
    expect(ssl('?sslrootcert=system')).toEqual({ ...verified, ca });
  });

  it('reads a certificate of our own and its key', () => {
    expect(ssl(`?sslcert=${own.cert}&sslkey=${own.key}`)).toEqual({
      ...unverified,
      cert: expect.any(Buffer),
      key: expect.any(Buffer),
    });
  });

  const modes = 'must have as sslmode one of disable, prefer, require, no-verify, verify-ca, verify-full';
  it.each([
    ['sslmode=canary', modes],
    ['sslmode=allow', modes],
    ['ssl=canary', 'must have as ssl true or false; sslmode says more'],
    ['sslrootcert=/canary', 'names as sslrootcert a file that cannot be read (ENOENT)'],
    ['sslrootcert=OWN_KEY', 'names as sslrootcert what is no certificate'],
    ['sslrootcert=system&sslmode=require', 'must have sslmode=verify-full with sslrootcert=system'],
    ['sslcert=OWN_CERT', 'must have sslcert and sslkey together'],
    ['sslcert=OWN_CERT&sslkey=OTHER_KEY', 'must name as sslcert and sslkey a certificate and its own key'],
  ])('refuses %s, and tells no value', (query, complaint) => {
    const files = { OWN_CERT: own.cert, OWN_KEY: own.key, OTHER_KEY: own.other };
    const named = query.replace(/OWN_CERT|OWN_KEY|OTHER_KEY/g, (name) => files[name as keyof typeof files]);
    expect(complaintOf(`postgres://h/x?${named}`)).toBe(complaint);
  });
});
