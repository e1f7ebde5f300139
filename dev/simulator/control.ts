import type { ServerResponse } from 'node:http';
import { type Call, type CallFilter, type CallLog, matches } from './calls.js';
import { decodeSegment } from './frames.js';
import type { Gates } from './gates.js';
import { behaviourList, isGated, partList } from './model-names.js';
import { stepList } from './script.js';
import type { RequestHead } from './wire-format.js';

const about = {
  simulator: true,
  name: 'Quillgate provider simulator',
  note: 'No model is ever called here: every answer is made up. Choose what happens with the name of the model.',
  formats: {
    openai: 'POST /v1/responses and /v1/chat/completions',
    anthropic: 'POST /v1/messages',
    bedrock: 'POST /model/{model}/converse and /model/{model}/converse-stream',
    vertexai:
      'POST /v1beta1/projects/{project}/locations/{location}/publishers/google/models/{model}:generateContent and :streamGenerateContent?alt=sse; also without project and location',
  },
  models: behaviourList,
  parts: partList,
  grammar:
    'A name is sim- and parts with dots between them, such as sim-think-200.call-2.cut-3; @mark gives another counter and gate.',
  script:
    'sim-script reads the newest text of the user that has `sim: [` and JSON behind it: a step for each of its turns, or an inner list of steps.',
  steps: stepList,
  parameters:
    'Checked by the rules of the provider. Every text ends before the first stop sequence; an echo has four characters a token at most.',
  control: {
    'GET /__simulator/calls':
      'the newest calls, with what they asked and their places in the sequence of begins and ends; ?model=, ?since=<id>; ?wait=call|close&timeoutMs=5000 waits for the first of them',
    'DELETE /__simulator/calls':
      'forgets calls, counts and the counters of sim-fail, sim-good, sim-hang and sim-limit, and closes gates',
    'GET /__simulator/calls/{id}/body': 'the body of a call, byte for byte as it arrived',
    'GET /__simulator/calls/stats': 'counts per provider, open sockets',
    'POST /__simulator/gates/{model}': 'opens the gate of a sim-gate or sim-tool-gate, by its whole name',
  },
};

const gatesPath = '/__simulator/gates/';
const bodyPath = /^\/__simulator\/calls\/(\d+)\/body$/;
const maxWaitMs = 60_000;

/** The part of the simulator that the control path uses. */
export interface ControlDeps {
  readonly calls: CallLog;
  readonly gates: Gates;
  reset(): void;
  readonly openSockets: number;
}

/** Whether a path belongs to the simulator itself, not to a provider. */
export function isControlPath(path: string): boolean {
  return path === '/' || path === '/__simulator' || path.startsWith('/__simulator/');
}

/** Answers a request to the control path. */
export async function control(deps: ControlDeps, head: RequestHead, response: ServerResponse): Promise<void> {
  const { calls } = deps;
  if (head.method === 'POST' && head.path.startsWith(gatesPath)) return openGate(deps.gates, head, response);
  const [, id] = bodyPath.exec(head.path) ?? [];
  if (id !== undefined) return sendBody(calls, Number(id), response);
  switch (`${head.method} ${head.path}`) {
    case 'GET /':
    case 'GET /__simulator':
      return send(response, 200, about);
    case 'GET /__simulator/calls':
      return listCalls(calls, head.query, response);
    case 'DELETE /__simulator/calls':
      deps.reset();
      response.writeHead(204).end();
      return;
    case 'GET /__simulator/calls/stats':
      return send(response, 200, { ...calls.stats(), openSockets: deps.openSockets });
    default:
      return sendNotFound(response, head);
  }
}

/** Answers 404: the address is neither a provider's nor the simulator's own. */
export function sendNotFound(response: ServerResponse, { method, path }: RequestHead): void {
  send(response, 404, { simulator: true, error: `Nothing at ${method} ${path}; GET / lists what there is.` });
}

function openGate(gates: Gates, head: RequestHead, response: ServerResponse): void {
  const model = decodeSegment(head.path.slice(gatesPath.length));
  if (model === undefined || !isGated(model)) {
    sendNotFound(response, head);
    return;
  }
  gates.open(model);
  response.writeHead(204).end();
}

function sendBody(calls: CallLog, id: number, response: ServerResponse): void {
  const [call] = calls.list({ since: id - 1 });
  const raw = call?.id === id ? call.content?.raw : undefined;
  if (raw === undefined) {
    send(response, 404, { simulator: true, error: 'No body of such a call.' });
    return;
  }
  response
    .writeHead(200, { 'Content-Type': 'application/octet-stream', 'Cache-Control': 'no-store' })
    .end(raw);
}

async function listCalls(calls: CallLog, query: URLSearchParams, response: ServerResponse): Promise<void> {
  const filter: CallFilter = {
    model: query.get('model') ?? undefined,
    since: Number(query.get('since') ?? 0),
  };
  const wait = query.get('wait');
  const timeoutMs = Number(query.get('timeoutMs') ?? 5000);
  if (!Number.isInteger(filter.since) || !(timeoutMs >= 0) || !['call', 'close', null].includes(wait)) {
    const error = 'since is the id of a call, wait is call or close, timeoutMs is a number of milliseconds.';
    return send(response, 400, { simulator: true, error });
  }
  if (wait === null) return send(response, 200, calls.list(filter));
  const wanted = (call: Call) => matches(call, filter);
  const signal = AbortSignal.timeout(Math.min(timeoutMs, maxWaitMs));
  return calls.waitFor(wanted, { event: wait === 'close' ? 'closed' : 'recorded', signal }).then(
    () => send(response, 200, calls.list(filter)),
    () => send(response, 408, { simulator: true, error: 'No such call within timeoutMs.' }),
  );
}

function send(response: ServerResponse, status: number, body: unknown): void {
  const text = `${JSON.stringify(body, null, 2)}\n`;
  response.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
  response.end(text);
}
