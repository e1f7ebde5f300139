import { finished, type Readable, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import type { Request } from 'express';
import { Failure } from '../../shared/failures.js';
import { Semaphore } from '../../shared/runtime/semaphore.js';

const decoders = new Map<string, () => Transform>([
  ['gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
  ['zstd', createZstdDecompress],
]);

/** Each has a thread while it decodes; bodies that wait for one take no more than they were sent with. */
const decoding = new Semaphore(2);
const waiting = { waitMs: 30_000, timeoutError: () => new Failure('overloaded', { retryAfterMs: 1000 }) };

interface BodyBounds {
  /** Bytes of a body, as it is sent and decoded. */
  maxBytes: number;
  /** Called with the bytes that the body takes so far, before more are kept; may throw to refuse the rest. */
  hold: (bytes: number) => void;
  /** Aborts with a `Failure` to refuse the rest. */
  refusal?: AbortSignal | undefined;
}

/**
 * Reads the body of a request, then decodes its Content-Encoding: a decoder costs 60 KB, and what it makes of a
 * thousand bytes may be a megabyte, so there is none for a body that has not arrived. A body that is refused is not
 * kept, and the request is left to be drained. Throws `payload_too_large`, what `hold` throws, the reason of the
 * signal, `unsupported_media_type` for an unknown encoding, and `invalid_json` for a body that cannot be decoded or
 * breaks off.
 */
export async function readBody(request: Request, bounds: BodyBounds): Promise<Buffer> {
  const createDecoder = decoderOf(request);
  const sent = await collect(request, bounds);
  if (createDecoder === undefined) return sent;
  const decoded = await decoding.run(() => decode(sent, createDecoder(), bounds), waiting);
  bounds.hold(decoded.length);
  return decoded;
}

async function decode(sent: Buffer, decoder: Transform, { maxBytes, hold }: BodyBounds): Promise<Buffer> {
  decoder.end(sent);
  try {
    return await collect(decoder, { maxBytes, hold: (bytes) => hold(sent.length + bytes) });
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
    if (end > maxBytes) throw new Failure('payload_too_large');
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

/** Undefined for a body that is not encoded. */
function decoderOf({
  headers: { 'content-encoding': encoding = 'identity' },
}: Request): (() => Transform) | undefined {
  const name = encoding.toLowerCase();
  if (name === 'identity') return undefined;
  const create = decoders.get(name);
  if (create === undefined) throw new Failure('unsupported_media_type');
  return create;
}
