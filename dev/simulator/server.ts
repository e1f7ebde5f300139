import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isRebound } from '../../shared/urls/hosts.js';
import { answer, refuse } from './answer.js';
import { type Call, CallLog } from './calls.js';
import { control, isControlPath, sendNotFound } from './control.js';
import { Gates } from './gates.js';
import { examine, findFormat } from './intake.js';
import { isGated } from './model-names.js';
import { PromptCaches } from './prompt-caches.js';
import type { RequestHead } from './wire-format.js';

/** A running simulator. */
export interface Simulator {
  /** Base URL without a slash at its end. */
  readonly url: string;
  readonly port: number;
  readonly calls: CallLog;
  /** The oldest recorded call that matches, or else the next one that does. */
  waitForCall(predicate: (call: Call) => boolean): Promise<Call>;
  /** Opens the gate of a model such as `sim-gate-2@mark`, by its whole name. Throws for a model that has none. */
  open(model: string): void;
  /** Stops listening and destroys every connection, so that hanging calls end. */
  close(): Promise<void>;
}

const loopbackAlone = 'On this address the simulator answers to localhost, 127.0.0.1 and [::1] alone.\n';
const keepAliveMs = 10 * 60 * 1000;

/** Starts a simulator of the four providers on one port, 0 for a free one; by default for this machine alone. */
export async function startSimulator(address: { port: number; host?: string }): Promise<Simulator> {
  const { port, host = '127.0.0.1' } = address;
  const session = new Session();
  const server = createServer({ keepAliveTimeout: keepAliveMs, requestTimeout: 0 }, (request, response) => {
    response.setHeader('X-Simulator', 'quillgate');
    if (isRebound(request)) return void response.writeHead(421).end(loopbackAlone);
    session.handle(request, response).catch((error: Error) => {
      // A client that disconnects while it sends is expected; any other error is a bug of the simulator.
      if (!request.destroyed || request.complete) process.emitWarning(error);
      response.destroy();
    });
  });
  server.on('connection', (socket) => {
    session.openSockets += 1;
    socket.on('close', () => {
      session.openSockets -= 1;
    });
  });
  server.on('clientError', (_error, socket) => {
    if (!socket.writable) return;
    socket.end(
      'HTTP/1.1 400 Bad Request\r\nX-Simulator: quillgate\r\nConnection: close\r\nContent-Length: 0\r\n\r\n',
    );
  });
  await once(server.listen(port, host), 'listening');
  const { port: listening } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${listening}`,
    port: listening,
    calls: session.calls,
    waitForCall: (predicate) => session.calls.waitFor(predicate),
    open: (model) => {
      if (!isGated(model)) throw new TypeError(`The model ${model} has no gate.`);
      session.gates.open(model);
    },
    close: async () => {
      session.closing = true;
      const closed = once(server, 'close');
      server.close().closeAllConnections();
      await closed;
    },
  };
}

class Session {
  readonly calls = new CallLog();
  readonly callNumbers = new Map<string, number>();
  readonly gates = new Gates();
  readonly caches = new PromptCaches();
  openSockets = 0;
  closing = false;

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const head = readHead(request);
    if (isControlPath(head.path)) return control(this, head, response);
    const format = findFormat(head);
    const body = await readBody(request);
    if (format === undefined) return sendNotFound(response, head);
    const { facts, content, verdict } = examine(format, head, body ?? Buffer.alloc(0));
    const call = this.calls.record(facts, content);
    response.on('close', () => this.#close(call, response));
    if (body === undefined) return refuse({ call, response }, format.errors.status(413));
    if ('status' in verdict) return refuse({ call, response }, verdict);
    const { callNumbers, gates, caches } = this;
    return answer({ call, ...verdict, format, response, callNumbers, gates, caches });
  }

  reset(): void {
    this.calls.clear();
    this.callNumbers.clear();
    this.gates.reset();
    this.caches.clear();
  }

  #close(call: Call, response: ServerResponse): void {
    const closedBy = this.closing || call.cutBySimulator ? 'by-simulator' : 'by-client';
    this.calls.close(call, response.writableFinished ? 'finished' : closedBy);
  }
}

function readHead({ method = '', url = '', headers }: IncomingMessage): RequestHead {
  const [path = ''] = url.split('?', 1);
  return { method, url, path, query: new URLSearchParams(url.slice(path.length)), headers };
}

const maxBodyBytes = 32 * 1024 * 1024;

/** The body of a request, or `undefined` if it is too large (32 MiB). Rejects when the client disconnects first. */
async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes <= maxBodyBytes) chunks.push(chunk);
    else chunks.length = 0;
  }
  return bytes > maxBodyBytes ? undefined : Buffer.concat(chunks);
}
