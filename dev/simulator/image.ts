import { createHash } from 'node:crypto';
import type { ImagePart, ImageType } from '../../shared/conversation.js';

/** The first bytes of each type of image, in hexadecimal. */
const signatures: [ImageType, RegExp][] = [
  ['image/png', /^89504e470d0a1a0a/],
  ['image/jpeg', /^ffd8ff/],
  ['image/gif', /^474946383[79]61/],
  ['image/webp', /^52494646.{8}57454250/],
];

/** The type of an image by its bytes, which are base64; undefined if they are no image. */
export function imageTypeOf(data: string): ImageType | undefined {
  const head = Buffer.from(data.slice(0, 32), 'base64').toString('hex');
  return signatures.find(([, beginning]) => beginning.test(head))?.[0];
}

/** An image that came with the call, of the type that the call names. */
export function readImage(mediaType: string, data: string): ImagePart {
  const bytes = Buffer.from(data, 'base64');
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { type: 'image', mediaType: mediaType as ImageType, sha256, bytes: bytes.length, data };
}
