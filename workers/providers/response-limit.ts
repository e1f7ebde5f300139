import type { IncomingMessage } from 'node:http';
import { unusableAnswer } from './error-classification.js';

/** How much of a provider's answer is read. */
export interface ResponseLimits {
  /** Largest body of one answer, in bytes as they come from the network: nothing here asks for compression or undoes it. */
  maxResponseBytes: number;
}

/**
 * Passes on the body of an answer, whatever its status, up to the limit. A longer one is a `provider_error` that is not
 * worth another call: thrown at once for an answer that says its length, else at the first byte too many. Whoever stops
 * reading closes the connection.
 */
export function limitResponse(
  incoming: IncomingMessage,
  { maxResponseBytes }: ResponseLimits,
): AsyncIterable<Buffer> {
  if (Number(incoming.headers['content-length']) <= maxResponseBytes) return incoming;
  if (incoming.headers['content-length'] === undefined) return countBytes(incoming, maxResponseBytes);
  incoming.destroy();
  throw unusableAnswer('oversized');
}

async function* countBytes(chunks: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw unusableAnswer('oversized');
    yield chunk;
  }
}
