import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { getCACertificates } from 'node:tls';
import { afterAll, describe, expect, it } from 'vitest';
import { parseConfig } from '../../../shared/config/config.js';
import { parsePostgresUrl } from '../../../shared/urls/postgres-url.js';
import { StoreUrlError } from '../../../shared/urls/store-url-parts.js';
import { makeAuthority } from '../../support/certificates.js';
import { makeFolder } from '../../support/folders.js';

const folder = makeFolder(afterAll);
const file = (name: string, content: string) => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};
const authority = makeAuthority();
const { certificate, key } = authority.issue('client');
/** Files, by the names that they have in the rows below. */
const files = {
  ROOT: file('root.crt', authority.certificate),
  OWN_CERT: file('own.crt', certificate),
  OWN_KEY: file('own.key', key),
  OTHER_KEY: file('other.key', authority.issue('other').key),
};
const withFiles = (query: string) =>
  query.replace(/ROOT|OWN_CERT|OWN_KEY|OTHER_KEY/g, (name) => files[name as keyof typeof files]);

const at = (query: string) => parsePostgresUrl(`postgres://db.example/blog${query}`);
const plain = { host: 'db.example', port: 5432, database: 'blog', ssl: false };

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
  ])('%s -> is read', (url, address) => {
    expect(parsePostgresUrl(url)).toEqual(address);
  });

  it('what is percent-encoded -> is decoded', () => {
    const secret = 'p@ss:/?#[]%&=+ é😀';
    const url = `postgres://${encodeURIComponent('us@er')}:${encodeURIComponent(secret)}@db.example/bl%2Fog`;

    expect(parsePostgresUrl(url)).toMatchObject({ user: 'us@er', password: secret, database: 'bl/og' });
    expect(at(`?password=${encodeURIComponent(secret)}`)).toMatchObject({ password: secret });
    expect(at('?password=a+b')).toMatchObject({ password: 'a+b' });
  });

  it('what does no harm -> is left out', () => {
    const query =
      '?uselibpqcompat=true&channel_binding=require&keepalives=1&keepalives_idle=30&connect_timeout=10' +
      '&application_name=x&target_session_attrs=read-write&gssencmode=disable&client_encoding=utf8&schema=public';

    expect(at(query)).toEqual(plain);
    expect(at('?&sslmode=require&&sslmode=disable&')).toEqual(plain);
  });

  const unsupported =
    'options=-c%20canary statement_timeout=0 search_path=canary schema=canary pgbouncer=true connection_limit=5 ' +
    'target_session_attrs=standby gssencmode=require sslcrl=canary max=1 __proto__=canary';
  // Each is a password that ends with canary, and a URL in which a part of it stands for something else.
  const unencoded = ['12?canary', '12?canary=', '12#canary', '12/canary', 'p@ss?canary=canary'];
  const modes = 'must have as sslmode one of disable, prefer, require, no-verify, verify-ca, verify-full';
  it.each([
    ...unsupported
      .split(' ')
      .map((one) => [`postgres://h/x?${one}`, `has parameters that are not supported: ${one.split('=')[0]}`]),
    [
      'postgres://h/x?a=canary&sslmode=require&b&c%20=',
      'has parameters that are not supported: a, b, one with an odd name',
    ],
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
    ...unencoded.map((password) => [
      `postgres://u:${password}@db.example/blog`,
      'must have the characters @ / ? # percent-encoded in user and password',
    ]),
    ['postgres://h/x?sslmode=canary', modes],
    ['postgres://h/x?sslmode=allow', modes],
    ['postgres://h/x?ssl=canary', 'must have as ssl true or false; sslmode says more'],
    ['postgres://h/x?sslrootcert=/canary', 'names as sslrootcert a file that cannot be read (ENOENT)'],
    ['postgres://h/x?sslrootcert=OWN_KEY', 'names as sslrootcert what is no certificate'],
    [
      'postgres://h/x?sslrootcert=system&sslmode=require',
      'must have sslmode=verify-full with sslrootcert=system',
    ],
    ['postgres://h/x?sslcert=OWN_CERT', 'must have sslcert and sslkey together'],
    [
      'postgres://h/x?sslcert=OWN_CERT&sslkey=OTHER_KEY',
      'must name as sslcert and sslkey a certificate and its own key',
    ],
  ] as [string, string][])(
    '%s -> is refused, as DATABASE_URL too, and no value told: %s',
    (row, complaint) => {
      const url = withFiles(row);
      expect(() => parsePostgresUrl(url)).toThrow(new StoreUrlError(complaint));
      const problems = [`DATABASE_URL: ${complaint}`];
      expect(() => parseConfig({ DATABASE_URL: url }, 'config')).toThrow(
        expect.objectContaining({ problems }),
      );
    },
  );
});

describe('parsePostgresUrl, about TLS', () => {
  const ssl = (query: string) => at(withFiles(query)).ssl;
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
  ])('%j -> is read so, without an authority and with one', (query, expected, withAuthority) => {
    expect(ssl(`?${query}`)).toEqual(expected);
    const ca = Buffer.from(authority.certificate);
    expect(ssl(`?sslrootcert=ROOT${query}`)).toEqual(withAuthority && Object.assign({ ca }, withAuthority));
  });

  it('verify-full alone -> looks at the name of the server', () => {
    const check = (mode: string) => {
      const options = ssl(`?sslmode=${mode}`);
      const certificate = { subject: { CN: 'other.example' }, subjectaltname: 'DNS:other.example' };
      return options ? options.checkServerIdentity?.('other.example', certificate as never) : 'no TLS';
    };

    expect(check('verify-full')).toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
    expect(check('verify-ca')).toBeUndefined();
  });

  it('sslrootcert=system -> adds the authorities of the system to those of Node', () => {
    const ca = expect.arrayContaining(getCACertificates('default'));
    expect(ssl('?sslrootcert=system')).toEqual({ ...verified, ca });
  });

  it('a certificate of our own and its key -> are read', () => {
    expect(ssl('?sslcert=OWN_CERT&sslkey=OWN_KEY')).toEqual({
      ...unverified,
      cert: expect.any(Buffer),
      key: expect.any(Buffer),
    });
  });
});
