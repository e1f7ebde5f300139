import { finished, type Readable, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import type { Request } from 'express';
import { Failure } from '../../shared/failures.js';
import type { Semaphore } from '../../shared/runtime/semaphore.js';

const decoders = new Map<string, () => Transform>([
  ['gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
  ['zstd', createZstdDecompress],
]);

/** The bounds of a body. */
interface BodyBounds {
  /** Bytes of a body, as it is sent and decoded. */
  maxBytes: number;
  /** Called with the bytes that the body takes so far, before more are kept; may throw to refuse the rest. */
  hold: (bytes: number) => void;
  /** How many bodies are decoded at once; undefined means that no Content-Encoding is taken. */
  decoding: Semaphore | undefined;
  /** Aborts with a `Failure` to refuse the rest. */
  signal?: AbortSignal | undefined;
}

/**
 * Reads the body of a request, then decodes its Content-Encoding: a decoder costs 60 KB, and what it makes of a
 * thousand bytes may be a megabyte, so there is none for a body that has not arrived. A body that is refused is not
 * kept, and the request is left to be drained. Throws `payload_too_large`, what `hold` throws, the reason of the
 * signal, `unsupported_media_type` for another encoding, and `invalid_json` for a body that cannot be decoded or breaks
 * off.
 */
export async function readBody(request: Request, bounds: BodyBounds): Promise<Buffer> {
  const { decoding, hold } = bounds;
  const createDecoder = decoderOf(request, decoding);
  try {
    const sent = await collect(request, bounds);
    if (decoding === undefined || createDecoder === undefined) return sent;
    const decoded = await decoding.run(() => decode(sent, createDecoder(), bounds), waiting);
    hold(decoded.length);
    return decoded;
  } finally {
    // The rest has to be read: else the connection could not be used again.
    request.resume();
  }
}

async function decode(sent: Buffer, decoder: Transform, bounds: BodyBounds): Promise<Buffer> {
  decoder.end(sent);
  try {
    return await collect(decoder, { ...bounds, hold: (bytes) => bounds.hold(sent.length + bytes) });
  } finally {
    decoder.destroy();
  }
}

const waiting = { waitMs: 30_000, timeoutError: () => new Failure('overloaded', { retryAfterMs: 1000 }) };

/** Reads all bytes of the source, and none that follow a refusal. */
async function collect(source: Readable, { maxBytes, hold, signal }: BodyBounds): Promise<Buffer> {
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
  await readChunks(source, append, signal);
  return bytes.subarray(0, length);
}

/** Rejects with the error of `onChunk`, and reads no further. An iterator took 30 µs more for one chunk. */
function readChunks(
  source: Readable,
  onChunk: (chunk: Buffer) => void,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const refuse = (error: unknown) => {
    source.off('data', read);
    signal?.removeEventListener('abort', giveWay);
    reject(error);
  };
  const giveWay = () => refuse(signal?.reason);
  const read = (chunk: Buffer) => {
    try {
      onChunk(chunk);
    } catch (error) {
      refuse(error);
    }
  };
  const forget = finished(source, { writable: false }, (cause) => {
    // The request lives until its chat has ended, and its listeners would hold the bytes of its body for as long.
    source.off('data', read);
    signal?.removeEventListener('abort', giveWay);
    forget();
    if (cause) reject(new Failure('invalid_json', { cause }));
    else resolve();
  });
  signal?.addEventListener('abort', giveWay);
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
function decoderOf(
  { headers: { 'content-encoding': encoding = 'identity' } }: Request,
  decoding: Semaphore | undefined,
): (() => Transform) | undefined {
  const name = encoding.toLowerCase();
  if (name === 'identity') return undefined;
  const create = decoders.get(name);
  if (create && decoding) return create;
  throw new Failure('unsupported_media_type', decoding ? {} : { headers: { 'Accept-Encoding': 'identity' } });
}
