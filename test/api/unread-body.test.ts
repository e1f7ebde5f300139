import { once } from 'node:events';
import { connect } from 'node:net';
import express from 'express';
import { afterAll, describe, expect, it } from 'vitest';
import { dropUnreadBody } from '../../api/unread-body.js';
import { serve } from '../support/serve.js';

const app = express();
app.post('/', (request, response) => {
  dropUnreadBody(request, { maxMs: 500 });
  response.status(401).send('refused');
});
const server = await serve(app);
afterAll(() => server.close());

describe('dropUnreadBody', () => {
  it('ends a connection whose body goes on for too long, however it drips', async () => {
    const socket = connect(server.port, '127.0.0.1').on('error', () => undefined);
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n');
    const dripping = setInterval(() => socket.write('x'), 20);
    const [said] = (await once(socket, 'data')) as [Buffer];
    expect(said.toString()).toMatch(/^HTTP\/1\.1 401/);
    await once(socket, 'close');
    clearInterval(dripping);
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
