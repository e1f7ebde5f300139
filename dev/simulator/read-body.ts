import type { IncomingMessage } from 'node:http';

const limitBytes = 32 * 1024 * 1024;

/** The body of a request, or `undefined` if it is too large (32 MiB). Rejects when the client goes away first. */
export function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= limitBytes) chunks.push(chunk);
      else chunks.length = 0;
    });
    request.on('end', () => resolve(bytes > limitBytes ? undefined : whole(chunks)));
    request.on('error', reject);
  });
}

function whole(chunks: Buffer[]): Buffer {
  const [first] = chunks;
  return first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks);
}
