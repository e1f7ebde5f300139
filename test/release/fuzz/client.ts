import {
  Agent,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
} from 'node:http';
import { connect } from 'node:net';

/** A request as it goes over the wire; the headers in order and as often as they stand there. */
export interface WireRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly Header[];
  readonly body: Buffer | undefined;
}

export type Header = readonly [name: string, value: string];

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Sends what `fetch` refuses to. */
export interface Client {
  /** Rejects when there is no whole answer within a minute. */
  send(request: WireRequest): Promise<Answer>;
  close(): void;
}

/** An attempt to log in may wait for eight seconds; no answer at all is what is looked for, not a slow one. */
const patienceMs = 60_000;

export function openClient(port: number): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: 32 });
  return {
    send: (wire) => (isSendable(wire) ? sendByNode({ port, agent, wire }) : sendBytes(port, wire)),
    close: () => agent.destroy(),
  };
}

/** Whether Node's own client sends it as it is. */
const isSendable = ({ method, path, headers }: WireRequest): boolean =>
  /^[\x21-\xff]+$/.test(path) &&
  /^[A-Z]+$/.test(method) &&
  headers.every(
    ([name, value]) => /^[!#$%&'*+.^`|~\w-]+$/.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value),
  );

interface Sending {
  port: number;
  agent: Agent;
  wire: WireRequest;
}

async function sendByNode(sending: Sending, attempts = 3): Promise<Answer> {
  const { port, agent, wire } = sending;
  const headers = [...framing(port, wire), ...wire.headers].flat();
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const signal = AbortSignal.timeout(patienceMs);
  const { method, path } = wire;
  const sent = request({ host: '127.0.0.1', port, agent, method, path, headers, signal }, resolve);
  sent.on('error', reject);
  sent.end(wire.body);
  try {
    const response = await promise;
    const chunks = await response.toArray();
    const body = Buffer.concat(chunks).toString();
    return { status: response.statusCode ?? 0, headers: response.headers, body };
  } catch (error) {
    if (signal.aborted) throw new Error('no answer within a minute');
    if (attempts > 1 && mayHaveMissed(sent, wire)) return sendByNode(sending, attempts - 1);
    throw error;
  }
}

/**
 * The server may close an idle connection at the moment it is used again (RFC 9112, 9.3.1), or refuse a large body
 * before it has come, so that the answer is lost.
 */
const mayHaveMissed = ({ reusedSocket }: ClientRequest, { body }: WireRequest): boolean =>
  reusedSocket || (body?.length ?? 0) > 65_536;

function framing(port: number, { headers, body }: WireRequest): Header[] {
  const has = (wanted: string) => headers.some(([name]) => name.toLowerCase() === wanted);
  return [
    ...(has('host') ? [] : [['Host', `127.0.0.1:${port}`] as const]),
    ...(body && !has('transfer-encoding') ? [['Content-Length', String(body.length)] as const] : []),
  ];
}

/** Without any client: one connection for one request, whose body is not read. */
async function sendBytes(port: number, wire: WireRequest): Promise<Answer> {
  const lines = [['Host', 'x'] as const, ...wire.headers, ['Connection', 'close'] as const];
  const head = [`${wire.method} ${wire.path} HTTP/1.1`, ...lines.map((line) => line.join(': '))].join('\r\n');
  const socket = connect(port, '127.0.0.1');
  socket.setTimeout(patienceMs, () => socket.destroy(new Error('no answer within a minute')));
  socket.write(`${head}\r\n\r\n`, 'latin1');
  const answer = Buffer.concat(await socket.toArray()).toString();
  return parse(answer.replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, ''));
}

function parse(answer: string): Answer {
  const end = answer.indexOf('\r\n\r\n');
  const [statusLine = '', ...lines] = answer.slice(0, end).split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1]);
  if (!status) throw new Error('no HTTP answer');
  const headers = Object.fromEntries(
    lines.map((line) => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  );
  return { status, headers, body: answer.slice(end + 4) };
}
