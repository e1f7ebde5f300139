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

/**
 * Reads the body of a request and decodes its Content-Encoding. `onBytes` gets the number of decoded bytes as they
 * arrive, and may throw to refuse the rest: then nothing of the body is kept, and the request is left to be drained.
 * Throws what `onBytes` throws, `unsupported_media_type` for an unknown encoding, and `invalid_json` for a body that
 * cannot be decoded or breaks off.
 */
export async function readBody(request: Request, onBytes: (bytes: number) => void): Promise<Buffer> {
  const decoder = decoderOf(request);
  if (decoder) request.pipe(decoder);
  const forget = decoder && finished(request, (error) => error && decoder.destroy(error));
  let bytes: Buffer = Buffer.alloc(0);
  let length = 0;
  const append = (chunk: Buffer) => {
    onBytes(chunk.length);
    const end = length + chunk.length;
    // Not a list of chunks: each one-byte chunk of a client would take hundreds of bytes.
    if (length === 0) bytes = chunk;
    else {
      if (end > bytes.length) bytes = enlarge(bytes, 2 * end);
      bytes.set(chunk, length);
    }
    length = end;
  };
  try {
    await readChunks(decoder ?? request, append);
  } finally {
    // The rest, and what follows the end of an encoded text, has to be read: else the connection could not be used
    // again.
    request.unpipe().resume();
    forget?.();
    decoder?.destroy();
  }
  return bytes.subarray(0, length);
}

/** Rejects with the error of `onChunk`, and reads no further. An iterator took 30 µs more for one chunk. */
function readChunks(source: Readable, onChunk: (chunk: Buffer) => void): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const read = (chunk: Buffer) => {
    try {
      onChunk(chunk);
    } catch (error) {
      source.off('data', read);
      reject(error);
    }
  };
  const forget = finished(source, { writable: false }, (cause) => {
    // The request lives until its chat has ended, and its listeners would hold the bytes of its body for as long.
    source.off('data', read);
    forget();
    if (cause) reject(new Failure('invalid_json', { cause }));
    else resolve();
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
}: Request): Transform | undefined {
  const name = encoding.toLowerCase();
  if (name === 'identity') return undefined;
  const create = decoders.get(name);
  if (create === undefined) throw new Failure('unsupported_media_type');
  return create();
}
