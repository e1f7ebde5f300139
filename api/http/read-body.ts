import { finished, type Readable, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import type { Request } from 'express';
import { Failure } from '../../shared/failures.js';

const decoders = new Map<string, () => Transform>([
  ['gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
  ['zstd', createZstdDecompress],
]);

interface BodyBounds {
  /** Bytes of a body, as it is sent and decoded. */
  maxBytes: number;
  /** Called with the bytes that the body takes so far, before more are kept; may throw to refuse the rest. */
  hold: (bytes: number) => void;
  /** Aborts with a `Failure` to refuse the rest. */
  refusal?: AbortSignal | undefined;
}

/** A body that has arrived. */
export interface SentBody {
  /** The bytes as they were sent. */
  readonly sent: Buffer;
  /** Decodes its Content-Encoding, and throws as `readBody`; absent for a body that has none. */
  readonly decode?: () => Promise<Buffer>;
}

/** The failure of a body with more than `maxBytes`, the limit at its address. */
export const tooLarge = (maxBytes: number): Failure =>
  new Failure('payload_too_large', {
    detail: `The body is larger than ${maxBytes} bytes, the limit at this address.`,
  });

/**
 * Reads the body of a request. It is decoded later: a decoder costs 60 KB and a thread, and what it makes of a thousand
 * bytes may be a megabyte, so there is none for a body that has not arrived. A body that is refused is not kept, and
 * the request is left to be drained. Throws `payload_too_large`, what `hold` throws, the reason of the signal,
 * `unsupported_media_type` for an unknown encoding, and `invalid_json` for a body that cannot be decoded or breaks off.
 */
export async function readBody(request: Request, bounds: BodyBounds): Promise<SentBody> {
  const createDecoder = decoderOf(request);
  const sent = await collect(request, bounds);
  return createDecoder ? { sent, decode: () => decode(sent, createDecoder(), bounds) } : { sent };
}

async function decode(sent: Buffer, decoder: Transform, { maxBytes, hold }: BodyBounds): Promise<Buffer> {
  decoder.end(sent);
  try {
    const decoded = await collect(decoder, { maxBytes, hold: (bytes) => hold(sent.length + bytes) });
    hold(decoded.length);
    return decoded;
  } finally {
    decoder.destroy();
  }
}

/** Reads all bytes of the source, and none that follow a refusal. */
async function collect(source: Readable, { maxBytes, hold, refusal }: BodyBounds): Promise<Buffer> {
  let bytes: Buffer = Buffer.alloc(0);
  let length = 0;
  const append = (chunk: Buffer) => {
    const end = length + chunk.length;
    if (end > maxBytes) throw tooLarge(maxBytes);
    hold(end);
    // Not a list of chunks: each one-byte chunk of a client would take hundreds of bytes.
    if (length === 0) bytes = chunk;
    else {
      if (end > bytes.length) bytes = enlarge(bytes, 2 * end);
      bytes.set(chunk, length);
    }
    length = end;
  };
  await readChunks(source, append, refusal);
  return bytes.subarray(0, length);
}

/** Rejects with the error of `onChunk`, and reads no further. An iterator took 30 µs more for one chunk. */
function readChunks(
  source: Readable,
  onChunk: (chunk: Buffer) => void,
  refusal: AbortSignal | undefined,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // The request lives until its chat has ended, and its listeners would hold the bytes of its body for as long.
  const end = (settle: () => void) => {
    source.off('data', read);
    forget();
    settle();
  };
  const read = (chunk: Buffer) => {
    try {
      onChunk(chunk);
    } catch (error) {
      end(() => reject(error));
    }
  };
  const forget = finished(source, { writable: false, signal: refusal }, (cause) => {
    if (refusal?.aborted) end(() => reject(refusal.reason));
    else if (cause) end(() => reject(new Failure('invalid_json', { cause })));
    else end(resolve);
  });
  source.on('data', read);
  return promise;
}

/** Does not fill the new memory with zeros: memory that was never written costs nothing. */
function enlarge(bytes: Buffer, size: number): Buffer {
  const larger = Buffer.allocUnsafe(size);
  larger.set(bytes);
  return larger;
}

/** The decoder for a body; undefined if it is not encoded. */
function decoderOf({
  headers: { 'content-encoding': encoding = 'identity' },
}: Request): (() => Transform) | undefined {
  const name = encoding.toLowerCase();
  if (name === 'identity') return undefined;
  const create = decoders.get(name);
  if (create === undefined) throw new Failure('unsupported_media_type');
  return create;
}
