import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { addUser } from '../support/accounts.js';
import { authorization, type Deployment, startDeployment } from '../support/deployment.js';
import { tinyImages } from '../support/images.js';
import { patience } from '../support/patience.js';

const connections = 200;
const imageBytes = 5_242_878;

let deployment: Deployment;
beforeAll(async () => {
  deployment = await startDeployment({});
});
afterAll(() => deployment?.stop());

/** Bytes of memory that the API process has. */
function residentBytes(): number {
  const status = readFileSync(`/proc/${deployment.api.pid}/status`, 'utf8');
  return 1024 * Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
}

const png = Buffer.concat([tinyImages['image/png'], Buffer.alloc(imageBytes)]).subarray(0, imageBytes);
const start = JSON.stringify({
  model: 'openai/sim-latency-1000',
  messages: [
    { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,' } }] },
  ],
}).slice(0, -7);
const shared = Buffer.from(`${start}${png.toString('base64')}`).subarray(0, -20);

/** A request with an image that no other one has; `onStatus` gets the status of its answer. */
function send(onStatus: (status: string) => void): Socket {
  const end = Buffer.from(`${randomBytes(15).toString('base64')}"}}]}]}`);
  const head = [
    'POST /v1/chat/completions HTTP/1.1',
    'Host: x',
    `Authorization: ${authorization}`,
    'Content-Type: application/json',
    `Content-Length: ${shared.length + end.length}`,
  ];
  const socket = connect(Number(new URL(deployment.url).port), '127.0.0.1').on('error', () => undefined);
  socket.once('data', (answer) => {
    onStatus(String(answer).slice(9, 12));
    socket.destroy();
  });
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  socket.write(shared);
  socket.write(end);
  return socket;
}

it('200 images of 5 MiB at once are not all held in memory, and another user is served', async () => {
  const other = await addUser(deployment, 'another');
  const before = residentBytes();
  let most = 0;
  const watching = setInterval(() => {
    most = Math.max(most, residentBytes() - before);
  }, 20);
  const statuses: string[] = [];
  const sockets = Array.from({ length: connections }, () => send((status) => void statuses.push(status)));
  try {
    await vi.waitFor(() => expect(statuses).toContain('429'), patience);
    // Like the images below, it may have to be sent again on a slow machine.
    const ask = () => deployment.chat({ headers: { Authorization: other } });
    await vi.waitFor(async () => expect((await ask()).status).toBe(200), patience);
    await vi.waitFor(() => expect(statuses).toHaveLength(connections), patience);
    expect(statuses).toContain('200');
    // On a slow machine this many bytes may keep the store from answering in time: then the queue is unavailable.
    expect(statuses.filter((status) => !['200', '429', '503'].includes(status))).toEqual([]);
    // The bodies alone would take all of it; garbage takes up to half.
    expect(most).toBeLessThan(0.6 * connections * shared.length);
  } finally {
    clearInterval(watching);
    for (const socket of sockets) socket.destroy();
  }
});

it('an image beyond the limit of all is refused before it is read', async () => {
  const body = Buffer.alloc(100_000_000, 'A');
  const { status } = await fetch(`${deployment.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { Authorization: authorization, 'Content-Type': 'application/json' },
    body,
  });
  expect(status).toBe(413);
});
