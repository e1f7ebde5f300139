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
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** No answer at all is what is looked for, not a slow one. */
const patienceMs = 120_000;

/** Sends, over a connection of its own, what no client would. Rejects when there is no whole answer. */
export async function send(port: number, wire: WireRequest, attempts = 10): Promise<Answer> {
  const socket = connect(port, '127.0.0.1');
  const received: Buffer[] = [];
  const { promise: end, resolve: endWith } = Promise.withResolvers<Error | boolean>();
  socket.setTimeout(patienceMs, () => socket.destroy(new Error('no answer in two minutes')));
  socket.on('data', (bytes) => received.push(bytes));
  socket.on('error', endWith).on('close', endWith);
  // In one piece: a server that refuses the head and closes would fail the write of a body that comes after it.
  socket.write(Buffer.concat([Buffer.from(headOf(wire), 'latin1'), wire.body ?? Buffer.alloc(0)]));
  const cause = await end;
  try {
    return parse(Buffer.concat(received));
  } catch (error) {
    // A large body that is refused before it has come may cost the connection, and with it the answer.
    if (attempts > 1 && (wire.body?.length ?? 0) > 32_768) return send(port, wire, attempts - 1);
    throw cause instanceof Error ? cause : error;
  }
}

function headOf({ method, path, headers, body }: WireRequest): string {
  const has = (wanted: string) => headers.some(([name]) => name.toLowerCase() === wanted);
  const lines = [
    ...(has('host') ? [] : [['Host', 'x']]),
    ...(body && !has('content-length') ? [['Content-Length', String(body.length)]] : []),
    ...[...headers, ...(has('connection') ? [] : [['Connection', 'close']])],
  ];
  return `${method} ${path} HTTP/1.1\r\n${lines.map((line) => `${line.join(': ')}\r\n`).join('')}\r\n`;
}

function parse(bytes: Buffer): Answer {
  const answer = bytes.toString('latin1').replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, '');
  const end = answer.indexOf('\r\n\r\n');
  const [statusLine = '', ...lines] = answer.slice(0, end).split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1]);
  if (!status) throw new Error('no HTTP answer');
  const headers = Object.fromEntries(lines.map((line) => split(line, ':')));
  const body = answer.slice(end + 4);
  const whole = headers['transfer-encoding'] === 'chunked' ? joinChunks(body) : body;
  return { status, headers, body: Buffer.from(whole, 'latin1').toString() };
}

const split = (line: string, at: string): [name: string, value: string] => [
  line.slice(0, line.indexOf(at)).toLowerCase(),
  line.slice(line.indexOf(at) + 1).trim(),
];

/** Throws unless the last chunk has come. */
function joinChunks(chunked: string): string {
  if (chunked === '') return '';
  let body = '';
  for (let at = 0; ; ) {
    const end = chunked.indexOf('\r\n', at);
    const size = Number.parseInt(chunked.slice(at, end), 16);
    if (end < 0 || Number.isNaN(size)) throw new Error('the answer ends before its last chunk');
    if (size === 0) return body;
    body += chunked.slice(end + 2, end + 2 + size);
    at = end + 2 + size + 2;
  }
}
