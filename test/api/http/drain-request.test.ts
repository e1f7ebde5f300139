import { EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import express from 'express';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { drainRequest } from '../../../api/http/problem.js';
import { serve } from '../../support/serve.js';

/** Tells of each part of a body, once it has been dropped. */
const dropped = new EventEmitter();

const app = express();
app.post('/', (request, response) => {
  drainRequest(request);
  request.on('data', () => dropped.emit('part'));
  response.status(401).send('refused');
});
const server = await serve(app);
afterAll(() => server.close());

describe('drainRequest', () => {
  it('ends a connection whose body goes on for too long, however it drips', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const socket = connect(server.port, '127.0.0.1');
    const closed = new Promise<void>((resolve) =>
      socket.on('error', () => resolve()).on('close', () => resolve()),
    );
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n');
    const [said] = (await once(socket, 'data')) as [Buffer];
    expect(said.toString()).toMatch(/^HTTP\/1\.1 401/);
    for (let passedMs = 0; passedMs <= 10_000; passedMs += 1900) {
      const part = once(dropped, 'part');
      socket.write('x');
      await part;
      vi.advanceTimersByTime(1900);
    }
    await closed;
  });

  it('leaves the connection open when the rest of the body arrives', async () => {
    const socket = connect(server.port, '127.0.0.1');
    for (let turn = 0; turn < 2; turn++) {
      socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n');
      await once(socket, 'data');
      socket.write('rest');
    }
    socket.destroy();
  });
});
