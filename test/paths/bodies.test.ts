import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { addUser } from '../support/accounts.js';
import { authorization, type Deployment, startDeployment } from '../support/deployment.js';
import { patience } from '../support/patience.js';

const connections = 400;
const maxBytes = 8_388_608;
const bodyBytes = 1_040_000;

let deployment: Deployment;
beforeAll(async () => {
  deployment = await startDeployment({
    variables: { CHAT_USER_MAX_QUEUED_BYTES: String(maxBytes) },
  });
});
afterAll(() => deployment.stop());

/** Bytes of memory that the API process has. */
function residentBytes(): number {
  const status = readFileSync(`/proc/${deployment.api.pid}/status`, 'utf8');
  return 1024 * Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
}

it('bodies of a megabyte that never end cost no more than their user may hold, and another user is served (finding S2)', async () => {
  const other = await addUser(deployment, 'another');
  const body = gzipSync(Buffer.alloc(bodyBytes, ' '));
  const head = [
    'POST /chat HTTP/1.1',
    'Host: x',
    `Authorization: ${authorization}`,
    'X-LLM: openai',
    'Content-Type: application/json',
    'Content-Encoding: gzip',
    `Content-Length: ${body.length}`,
  ];
  const bytes = Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body.subarray(0, -16)]);
  const before = residentBytes();
  let refused = 0;
  const sockets: Socket[] = [];
  try {
    for (let n = 0; n < connections; n += 1) {
      const socket = connect(Number(new URL(deployment.url).port), '127.0.0.1').on('error', () => undefined);
      socket.once('data', (answer) => {
        if (String(answer).startsWith('HTTP/1.1 429 ')) refused += 1;
      });
      socket.write(bytes);
      sockets.push(socket);
    }
    const atLeast = connections - Math.ceil(maxBytes / bodyBytes) - 1;
    await vi.waitFor(() => expect(refused).toBeGreaterThanOrEqual(atLeast), patience);
    // The bodies alone would take all of it; decoders and garbage take up to half.
    expect(residentBytes() - before).toBeLessThan(0.7 * connections * bodyBytes);
    const served = await deployment.chat({ headers: { Authorization: other } });
    expect(served.status).toBe(200);
    expect(served.tookMs).toBeLessThan(2000);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});
