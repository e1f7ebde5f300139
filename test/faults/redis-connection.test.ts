import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Cluster } from 'ioredis';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { freePort } from '../../dev/free-port.js';
import {
  connectRedis,
  type OutageMode,
  type RedisConnection,
} from '../../shared/queue/stores/redis-connection.js';
import { parseRedisUrl } from '../../shared/urls/redis-url.js';
import { patience } from '../support/patience.js';
import { startRedisProcess } from '../support/redis-process.js';
import { openWire, type Wire } from '../support/wire.js';

/** A server, and the URL that leads to it through a wire. */
interface Wired {
  url: string;
  wire: Wire;
}

/** One server is enough of a cluster, and one Sentinel to ask. */
const topologies: Record<string, () => Promise<Wired>> = {
  'one server': async () => {
    const wire = await wireTo((await startServer()).port);
    return { wire, url: `redis://127.0.0.1:${wire.port}` };
  },
  'a cluster': async () => {
    const busPort = await freePort();
    const server = await startServer([
      'cluster-enabled yes',
      'cluster-announce-ip 127.0.0.1',
      `cluster-port ${busPort}`,
    ]);
    await server.command('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    const wire = await wireTo(server.port);
    await server.command('CONFIG', 'SET', 'cluster-announce-port', String(wire.port));
    await expect
      .poll(async () => String(await server.command('CLUSTER', 'INFO')), patience)
      .toContain('cluster_state:ok');
    return { wire, url: `redis-cluster://127.0.0.1:${wire.port}` };
  },
  'a master that Sentinels watch': async () => {
    const wire = await wireTo((await startServer()).port);
    const sentinel = await startServer([`sentinel monitor mymaster 127.0.0.1 ${wire.port} 1`], true);
    return { wire, url: `redis-sentinel://127.0.0.1:${sentinel.port}/mymaster` };
  },
};

async function startServer(lines: string[] = [], isSentinel = false) {
  const server = await startRedisProcess({ lines, isSentinel });
  onTestFinished(server.stop);
  return server;
}

async function wireTo(port: number): Promise<Wire> {
  const wire = await openWire(port);
  onTestFinished(wire.close);
  return wire;
}

/** How long a connection may be silent while an answer is due; a read blocks for half of it. */
const silenceMs = 3000;
const blockS = 1.5;

async function connect(url: string, mode: OutageMode): Promise<RedisConnection> {
  const redis = connectRedis(parseRedisUrl(url), mode, { socketTimeout: silenceMs });
  redis.on('error', () => undefined);
  onTestFinished(() => redis.disconnect());
  await once(redis, 'ready');
  return redis;
}

describe.each(Object.entries(topologies))('to %s', (_name, start) => {
  it('a connection that dies without a word -> is replaced; one that is idle, or waits, is not', async () => {
    const { url, wire } = await start();
    const [patient, blocking, impatient] = await Promise.all([
      connect(url, 'blocking'),
      connect(url, 'blocking'),
      connect(url, 'fail-fast'),
    ]);
    const connections = [patient, blocking, impatient];
    let closed = 0;
    for (const redis of connections) redis.on('close', () => (closed += 1));
    // For longer than an answer may take two are idle, and one waits for something that does not come.
    for (let time = 0; time < 3; time += 1) await blocking.blpop('list', blockS);
    expect(closed).toBe(0);

    wire.swallow();
    const written = async () => (await impatient.set('key', 'value').catch(() => undefined)) === 'OK';
    const [set] = await Promise.all([
      patient.set('another', 'value'),
      blocking.blpop('list', blockS),
      expect.poll(written, patience).toBe(true),
    ]);
    expect(set).toBe('OK');
  });

  it('the commands of one turn of the event loop -> one write, after two errors of a socket and a reconnect too', async () => {
    const redis = await connect((await start()).url, 'fail-fast');
    const sendTogether = async () => {
      // The connections to a cluster's nodes open with the first command.
      await expect.poll(() => redis.get('key').catch(() => 'failed'), patience).not.toBe('failed');
      const socket = socketOf(redis);
      const [write, writeAll] = [vi.spyOn(socket, '_write'), vi.spyOn(socket, '_writev')];
      await Promise.all(Array.from({ length: 5 }, (_, n) => redis.set('key', n)));
      return [write.mock.calls.length, writeAll.mock.calls.length];
    };
    expect(await sendTogether()).toEqual([0, 1]);
    const first = socketOf(redis);
    for (const each of ['one', 'two']) first.emit('error', new Error(`${each} of a socket with TLS`));
    redis.disconnect(true);
    await once(redis, 'ready');
    expect(await sendTogether()).toEqual([0, 1]);
    expect(socketOf(redis)).not.toBe(first);
  });
});

function socketOf(redis: RedisConnection): Socket {
  const node = redis instanceof Cluster ? redis.nodes('master')[0] : redis;
  if (node === undefined) throw new Error('no master');
  return node.stream;
}

describe('to a server that became a replica', () => {
  it('many commands that it refuses -> no warning of a leak', async () => {
    const server = await startServer();
    const url = `redis://127.0.0.1:${server.port}`;
    const redis = await connect(url, 'fail-fast');
    const warnings: Error[] = [];
    const warn = (warning: Error) => void warnings.push(warning);
    process.on('warning', warn);
    onTestFinished(() => void process.off('warning', warn));
    await server.command('REPLICAOF', '127.0.0.1', String(await freePort()));
    const writes = Array.from({ length: 20 }, (_, n) => redis.set(String(n), 'value'));
    for (const { status } of await Promise.allSettled(writes)) expect(status).toBe('rejected');
    expect(warnings).toEqual([]);
  });
});

describe('with Sentinels', () => {
  it('news of a failover that come while it asks for the master -> it connects all the same', async () => {
    const server = await startServer();
    const sentinel = await startSentinel(server.port);
    const redis = await connect(`redis-sentinel://127.0.0.1:${sentinel.port}/mymaster`, 'fail-fast');
    await sentinel.subscribed;
    const [isAsked, isBack] = [sentinel.holdAnswer(), once(redis, 'ready')];
    await server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    const answer = await isAsked;
    await sentinel.tellOfFailover();
    answer();
    await isBack;
    expect(await redis.set('key', 'value')).toBe('OK');
  });
});

/** A Sentinel that answers and tells when the test wants it to. */
async function startSentinel(masterPort: number) {
  const { promise: subscribed, resolve: subscribe } = Promise.withResolvers<Socket>();
  let ask: ((answer: () => void) => void) | undefined;
  const host = '127.0.0.1';
  const address = `*2\r\n$${host.length}\r\n${host}\r\n$${String(masterPort).length}\r\n${masterPort}\r\n`;
  const handle = (command: string, socket: Socket) => {
    if (command.includes('get-master-addr-by-name')) {
      const answer = () => void socket.write(address);
      if (ask) ask(answer);
      else answer();
      ask = undefined;
    } else if (command.includes('subscribe')) {
      socket.write('>3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n');
      subscribe(socket);
    } else socket.write(command.includes('sentinels') ? '*0\r\n' : '+OK\r\n');
  };
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      for (const command of String(bytes).split(/(?=\*\d+\r\n)/)) handle(command, socket);
    });
  });
  await once(server.listen(0, host), 'listening');
  onTestFinished(() => void server.close());
  return {
    port: (server.address() as AddressInfo).port,
    /** Resolves when a connection hears of failovers. */
    subscribed,
    /** Resolves when the master is asked for, with what gives the answer. */
    holdAnswer: () => new Promise<() => void>((resolve) => (ask = resolve)),
    /** Resolves when the connection that heard of failovers is closed: it is replaced once it hears of one. */
    tellOfFailover: async () => {
      const listener = await subscribed;
      listener.write('>3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$8\r\nmymaster\r\n');
      if (!listener.closed) await once(listener, 'close');
    },
  };
}
