import { createHash } from 'node:crypto';
import type { ImagePart, ImageType, StoredImage } from '../../../shared/conversation.js';
import { Failure } from '../../../shared/failures.js';
import type { UploadedImage } from '../../chat/chat-command.js';

/** Thrown for a data URL that is no image; its message follows the name of the field, and quotes nothing. */
export class UnfitImage extends Error {
  override readonly name = 'UnfitImage';
}

/** Reads the images of one request. Its uploads belong into the command, so that they are stored before the job. */
export class RequestImages {
  /** The images that came as bytes, each once. */
  readonly uploads: UploadedImage[] = [];
  readonly #digests = new Set<string>();
  #bytes = 0;

  /** `maxBytes` is for all of them together, decoded. */
  constructor(private readonly maxBytes: number) {}

  /**
   * The part of the turn for an image's URL; whether the provider takes it is for `unsupportedImage` to say. Throws
   * `UnfitImage` for a data URL that is no image, and `payload_too_large`.
   */
  read(url: string): ImagePart {
    if (!isDataUrl(url)) return { type: 'image', url };
    // Before it is decoded. A data URL is hardly longer than its base64.
    if (this.#bytes + decodedLength(url.length) - maxHeadLength > this.maxBytes) throw this.#tooLarge();
    const image = readDataUrl(url);
    this.#bytes += image.bytes.length;
    if (this.#bytes > this.maxBytes) throw this.#tooLarge();
    if (!this.#digests.has(image.part.sha256)) this.uploads.push(image);
    this.#digests.add(image.part.sha256);
    return image.part;
  }

  #tooLarge(): Failure {
    const detail = `The images of this request are larger than ${this.maxBytes} bytes, the limit for all of them together.`;
    return new Failure('payload_too_large', { detail });
  }
}

const isDataUrl = (url: string): boolean => url.slice(0, 5).toLowerCase() === 'data:';

/** A media type with its parameters takes less; nothing behind it is searched for a comma. */
const maxHeadLength = 256;

/**
 * The image of a data URL in base64 (RFC 2397), by its content: what the URL claims to be does not count. Takes a time
 * that is linear to the length. Throws `UnfitImage`.
 */
export function readDataUrl(url: string): UploadedImage & { part: StoredImage } {
  const head = url.slice(0, maxHeadLength);
  const comma = head.indexOf(',');
  if (comma < 0 || !head.slice(0, comma).toLowerCase().endsWith(';base64'))
    throw new UnfitImage('must be a data: URL in base64');
  const bytes = decodeBase64(url.slice(comma + 1));
  const mediaType = bytes && mediaTypeOf(bytes);
  if (bytes === undefined) throw new UnfitImage('is not valid base64');
  if (mediaType === undefined) throw new UnfitImage('is not a PNG, JPEG, WebP or GIF image');
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { part: { type: 'image', mediaType, sha256, bytes: bytes.length }, bytes };
}

/** Undefined unless all of it is base64 with its padding. Node skips what is none: the result is then too short. */
function decodeBase64(text: string): Buffer | undefined {
  const padding = text.endsWith('==') ? 2 : Number(text.endsWith('='));
  if (text.length % 4 !== 0) return undefined;
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === decodedLength(text.length) - padding ? bytes : undefined;
}

const decodedLength = (length: number): number => Math.floor((length * 3) / 4);

/** The first bytes of each type; a space stands for any byte. https://mimesniff.spec.whatwg.org/#image-type-pattern */
const signatures: [ImageType, string][] = [
  ['image/png', '\x89PNG\r\n\x1a\n'],
  ['image/jpeg', '\xff\xd8\xff'],
  ['image/webp', 'RIFF    WEBPVP'],
  ['image/gif', 'GIF87a'],
  ['image/gif', 'GIF89a'],
];

function mediaTypeOf(bytes: Buffer): ImageType | undefined {
  const start = bytes.toString('latin1', 0, 16);
  const isAt = (signature: string) =>
    [...signature].every((character, at) => character === ' ' || character === start[at]);
  return signatures.find(([, signature]) => isAt(signature))?.[0];
}
