import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Response as HttpResponse } from 'express';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FleetEvents } from '../../../api/admin/events.controller.js';
import type { Fleet } from '../../../shared/contracts/fleet-contract.js';
import type { Failure } from '../../../shared/failures.js';
import { readEvents } from '../../support/event-streams.js';
import { patience } from '../../support/patience.js';
import { type Served, serve } from '../../support/serve.js';

const lookEveryMs = 5;
/** Never, but where a test is about it. */
let aliveAfterMs: number;
let fleet: Fleet;
let looks: number;
let isAllowed: boolean;
/** Whose the next stream is; absent means that each has a user of its own. */
let user: string | undefined;
let stopping: AbortController;
let refused: Failure[];
let responses: HttpResponse[];
let handler: RequestListener;
let server: Served;
beforeEach(async () => {
  fleet = {
    ...{ at: 'now', release: '1', queue: { store: 'redis', status: 'ok' } },
    providers: (['openai', 'bedrock'] as const).map((provider) => ({
      ...{ provider, state: 'absent', kind: 'unknown', concurrency: 0, inFlight: 0, workers: [] },
    })),
  };
  looks = 0;
  isAllowed = true;
  user = undefined;
  stopping = new AbortController();
  refused = [];
  responses = [];
  aliveAfterMs = Number.POSITIVE_INFINITY;
  const events = new FleetEvents({
    ...{ fleet: { read }, stopping: stopping.signal, lookEveryMs },
    get aliveAfterMs() {
      return aliveAfterMs;
    },
  });
  handler = (_request, answer) => {
    const response = answer as HttpResponse;
    response.locals = {};
    response.setHeader('X-Request-Id', 'the-id');
    responses.push(response);
    events
      .follow(response, {
        user: user ?? `user ${responses.length}`,
        isAllowed: () => isAllowed,
      })
      .catch((failure) => {
        refused.push(failure);
        response.statusCode = failure.status;
        response.end();
      });
  };
  server = await serve(handler);
});
afterEach(() => server.close());

const read = async () => {
  looks += 1;
  return structuredClone(fleet);
};
const another = async () => {
  const since = looks;
  await vi.waitFor(() => expect(looks).toBeGreaterThan(since + 1), patience);
};
const open = async () => readEvents(await fetch(server.url));
/** Changes a provider. */
const change = (index: number, inFlight: number) => {
  const provider = fleet.providers[index];
  if (provider) provider.inFlight = inFlight;
};

describe('streams of the fleet', () => {
  it('are read -> a snapshot, then whole what has changed, and nothing else', async () => {
    const events = await open();
    expect((await events.next()).value).toEqual({ event: 'snapshot', data: fleet });
    await another();
    fleet.at = 'later';
    change(1, 7);
    expect((await events.next()).value).toEqual({ event: 'provider', data: fleet.providers[1] });
    await another();
    fleet.queue = { store: 'redis', status: 'failing', detail: 'x' };
    expect((await events.next()).value).toEqual({ event: 'queue', data: fleet.queue });
    await events.return(undefined);
  });

  it('have had nothing to send for a while -> say that they are alive, and then again', async () => {
    aliveAfterMs = 4 * lookEveryMs;
    const events = await open();
    expect((await events.next()).value?.event).toBe('snapshot');
    for (const at of ['later', 'even later']) {
      fleet.at = at;
      await another();
      let { value } = await events.next();
      while (value?.data.at !== at) ({ value } = await events.next());
      expect(value).toEqual({ event: 'alive', data: { at } });
    }
    await events.return(undefined);
  });

  it('have many readers, or none -> one look for all, whoever comes later too, and none', async () => {
    expect(looks).toBe(0);
    const readers = await Promise.all([open(), open(), open()]);
    for (const events of readers) expect((await events.next()).value?.event).toBe('snapshot');
    change(0, 1);
    for (const events of readers) expect((await events.next()).value?.data).toMatchObject({ inFlight: 1 });
    const late = await open();
    expect((await late.next()).value?.data.providers[0]).toMatchObject({ inFlight: 1 });
    for (const events of [...readers, late]) await events.return(undefined);
    await vi.waitFor(() => expect(responses.every(({ destroyed }) => destroyed)).toBe(true), patience);
    let before = -1;
    const isOver = () => {
      const isSame = looks === before;
      before = looks;
      expect(isSame).toBe(true);
    };
    await vi.waitFor(isOver, { ...patience, interval: 20 * lookEveryMs });
    const again = await open();
    expect((await again.next()).value?.data).toEqual(fleet);
    await again.return(undefined);
  });

  it('have credentials that are no longer valid -> end with a problem', async () => {
    const events = await open();
    await events.next();
    isAllowed = false;
    const { value } = await events.next();
    expect(value).toMatchObject({ event: 'error', data: { code: 'unauthorized', requestId: 'the-id' } });
    expect((await events.next()).done).toBe(true);
  });

  it('are of a process that begins to stop -> end, and no more begin', async () => {
    const events = await open();
    await events.next();
    stopping.abort();
    expect((await events.next()).done).toBe(true);
    expect((await fetch(server.url)).status).toBe(500);
    expect(refused).toMatchObject([{ code: 'internal', retryable: true }]);
  });

  it('are 20 of one user, and then 200 in all -> no more of that user, and of nobody until they end', async () => {
    user = 'one';
    const readers = await Promise.all(Array.from({ length: 20 }, open));
    await Promise.all(readers.map((events) => events.next()));
    expect((await fetch(server.url)).status).toBe(429);
    user = undefined;
    readers.push(...(await Promise.all(Array.from({ length: 180 }, open))));
    await Promise.all(readers.slice(20).map((events) => events.next()));
    expect((await fetch(server.url)).status).toBe(429);
    await Promise.all(readers.map((events) => events.return(undefined)));
    await vi.waitFor(async () => {
      const events = await open();
      expect((await events.next()).value?.event).toBe('snapshot');
      await events.return(undefined);
    }, patience);
  });
});

describe('fifty clients that do not read', () => {
  /** More than the system takes for a connection by a file, which is much less than for one by an address. */
  const bulk = 'x'.repeat(300_000);
  let local: Server;
  let path: string;
  beforeEach(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'quillgate-test-'));
    path = join(folder, 'socket');
    local = createServer(handler).listen(path);
    await once(local, 'listening');
    return async () => {
      local.closeAllConnections();
      local.close();
      await once(local, 'close');
      rmSync(folder, { recursive: true });
    };
  });

  /** Changes everything until nothing more fits into any connection, and then a few times more. */
  async function stall() {
    const sockets = Array.from({ length: 50 }, () => connect(path).pause());
    for (const socket of sockets) socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    let n = 0;
    let changes = 0;
    await vi.waitFor(() => {
      for (const provider of fleet.providers)
        provider.workers = [
          {
            ...{ worker: `${++n} ${bulk}`, state: 'serving', concurrency: 1, inFlight: 1, meanJobMs: 1 },
            ...{ breakers: [], simulated: false, settingsVersion: 0, release: '0.4.0', host: 'h' },
          },
        ];
      expect(responses).toHaveLength(50);
      for (const response of responses) expect(response.writableNeedDrain).toBe(true);
      expect(++changes).toBeGreaterThan(5);
    }, patience);
    return sockets;
  }

  it('-> get no more than one look, however much changes, delay nobody, and then get the newest', async () => {
    const sockets = await stall();
    const oneLook = JSON.stringify(fleet).length + 1000;
    for (const { writableLength } of responses) expect(writableLength).toBeLessThan(oneLook);
    // A new reader gets the last look, which may have been before the last change.
    await another();
    const events = await open();
    expect((await events.next()).value?.data).toEqual(fleet);
    change(0, 4711);
    expect((await events.next()).value?.data).toMatchObject({ inFlight: 4711 });
    await events.return(undefined);

    const [first] = sockets;
    let received = '';
    first?.setEncoding('utf8').on('data', (text) => {
      received = `${received}${text}`.slice(-2_000_000);
    });
    first?.resume();
    await vi.waitFor(() => expect(received).toContain('"inFlight":4711'), patience);
    for (const socket of sockets) socket.destroy();
  });

  const refuse = () => {
    isAllowed = false;
  };
  it.each([
    ['the process begins to stop', () => stopping.abort()],
    ['the credentials are no longer valid', refuse],
  ])('and %s -> are disconnected', async (_, end) => {
    const sockets = await stall();
    const closed = responses.map((response) => once(response, 'close'));
    end();
    await Promise.all(closed);
    for (const socket of sockets) socket.destroy();
  });
});
