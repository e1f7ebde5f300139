import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import type { Request } from 'express';
import { Failure } from '../../shared/failures.js';

/** The decoders of a Content-Encoding. */
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
export function readBody(request: Request, onBytes: (bytes: number) => void): Promise<Buffer> {
  const decoder = decoderOf(request);
  const source = decoder ?? request;
  const body = new GrowingBuffer();
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const onData = (chunk: Buffer) => {
    try {
      onBytes(chunk.length);
      body.append(chunk);
    } catch (error) {
      end();
      reject(error);
    }
  };
  const onEnd = () => {
    end();
    resolve(body.bytes);
  };
  const onBreak = (cause?: unknown) => {
    end();
    reject(new Failure('invalid_json', { cause }));
  };
  // A request that has arrived whole closes before its decoder has ended.
  const onClose = () => {
    if (!request.complete) onBreak();
  };
  const end = () => {
    source.off('data', onData).off('end', onEnd);
    request.off('close', onClose);
    if (decoder === undefined) return;
    // What follows the end of the encoded text has to be read, or the connection could not be used again.
    request.unpipe(decoder).resume();
    decoder.destroy();
  };
  source.on('data', onData).on('end', onEnd).on('error', onBreak);
  request.once('close', onClose);
  if (decoder) request.on('error', onBreak).pipe(decoder);
  return promise;
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

/**
 * Joins chunks in at most twice their bytes. In a list each one-byte chunk of a client would take hundreds of bytes.
 */
class GrowingBuffer {
  #bytes: Buffer = Buffer.alloc(0);
  #length = 0;

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  append(chunk: Buffer): void {
    const length = this.#length + chunk.length;
    // Most bodies are one chunk, which is not copied.
    if (this.#length === 0) this.#bytes = chunk;
    else {
      if (length > this.#bytes.length) this.#grow(2 * length);
      this.#bytes.set(chunk, this.#length);
    }
    this.#length = length;
  }

  #grow(size: number): void {
    const larger = Buffer.allocUnsafe(size);
    larger.set(this.bytes);
    this.#bytes = larger;
  }
}
