import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/** A certificate with its key, in PEM. */
export interface MadeCertificate {
  certificate: string;
  key: string;
}

/** Creates a certificate authority that issues server certificates, valid for one day. */
export function makeAuthority(name = 'Test authority') {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const signedBy = { name, key: keys.privateKey };
  const own = encode({ ...signedBy, subject: name, publicKey: keys.publicKey, extensions: [isAuthority] });
  return {
    /** Its own certificate, in PEM. */
    certificate: own,
    /** Issues a certificate for this DNS name, or for 127.0.0.1 without one. */
    issue: (host?: string): MadeCertificate => {
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const extensions = [alternativeName(host)];
      return {
        certificate: encode({ ...signedBy, subject: host ?? 'an address', publicKey, extensions }),
        key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
      };
    },
  };
}

interface Certificate {
  /** Of the signer. */
  name: string;
  key: KeyObject;
  subject: string;
  publicKey: KeyObject;
  extensions: Buffer[];
}

/** X.509 in DER (RFC 5280, 4.1), as far as tests need it: Node can read certificates, but not create them. */
function encode({ name, key, subject, publicKey, extensions }: Certificate): string {
  const algorithm = sequence(ecdsaWithSha256);
  const dayMs = 86_400_000;
  const body = sequence(
    tagged(0xa0, integer(2)),
    tagged(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    algorithm,
    distinguishedName(name),
    sequence(time(Date.now() - dayMs), time(Date.now() + dayMs)),
    distinguishedName(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(...extensions)),
  );
  const signature = tagged(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', body, key)]));
  const lines =
    sequence(body, algorithm, signature)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

function tagged(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const length = content.length < 128 ? [content.length] : [0x82, content.length >> 8, content.length & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

const sequence = (...parts: Buffer[]) => tagged(0x30, ...parts);
const integer = (value: number) => tagged(0x02, Buffer.from([value]));
const octets = (content: Buffer) => tagged(0x04, content);
const identifier = (hex: string) => tagged(0x06, Buffer.from(hex, 'hex'));
const text = (value: string) => tagged(0x0c, Buffer.from(value));
const time = (at: number) =>
  tagged(0x17, Buffer.from(`${new Date(at).toISOString().replace(/\D/g, '').slice(2, 14)}Z`));

const ecdsaWithSha256 = identifier('2a8648ce3d040302');
const commonName = '550403';
const distinguishedName = (name: string) =>
  sequence(tagged(0x31, sequence(identifier(commonName), text(name))));

const yes = tagged(0x01, Buffer.from([0xff]));
const isAuthority = sequence(identifier('551d13'), yes, octets(sequence(yes)));

function alternativeName(host: string | undefined): Buffer {
  const name =
    host === undefined ? tagged(0x87, Buffer.from([127, 0, 0, 1])) : tagged(0x82, Buffer.from(host));
  return sequence(identifier('551d11'), octets(sequence(name)));
}
