import type { ServerResponse } from 'node:http';
import type { Turn } from '../../shared/contract.js';
import { type Behaviour, type ErrorBehaviour, echoBehaviour, type ReplyBehaviour } from './behaviours.js';
import type { Call } from './call.js';
import { composeReply } from './compose.js';
import { deliver, endlessText, pause, sendEndlessly } from './deliver.js';
import type { Refusal } from './refusal.js';
import type { WireFormat } from './wire-format.js';

/** A valid call and the means to answer it. */
export interface Exchange {
  readonly call: Call;
  readonly turns: readonly Turn[];
  readonly format: WireFormat;
  readonly response: ServerResponse;
  /** Counts the calls of each model of each provider whose behaviour changes with their number. */
  readonly failures: Map<string, number>;
}

/** Plays a behaviour. Resolves when nothing more will be sent. */
export async function answer(exchange: Exchange, behaviour: Behaviour): Promise<void> {
  const { format, call, response } = exchange;
  switch (behaviour.kind) {
    case 'reply':
      return reply(exchange, behaviour);
    case 'error':
      return isUsedUp(exchange, behaviour)
        ? reply(exchange, echoBehaviour)
        : refuse(exchange, format.errors.status(behaviour.status), behaviour.retryAfterS);
    case 'endless-error':
      return refuseEndlessly(exchange, format.errors.status(behaviour.status));
    case 'not-ready':
      return refuse(exchange, format.errors.notReady());
    case 'hang':
      return isUsedUp(exchange, behaviour) ? reply(exchange, echoBehaviour) : undefined;
    case 'reset':
      call.cutBySimulator = true;
      response.socket?.resetAndDestroy();
      return;
    case 'html':
      return succeed(exchange, 'text/html; charset=utf-8', webPage);
    case 'garbage':
      return call.facts.stream
        ? succeed(exchange, format.streamType, format.garbage.frame)
        : succeed(exchange, 'application/json', JSON.stringify(format.garbage.whole));
    case 'stream-error':
      return call.facts.stream ? breakStream(exchange) : refuse(exchange, format.errors.status(500));
  }
}

/** Answers with an error in the provider's words. */
export function refuse(
  { call, response }: Pick<Exchange, 'call' | 'response'>,
  refusal: Refusal,
  retryAfterS?: number,
): void {
  call.status = refusal.status;
  response.writeHead(refusal.status, {
    ...refusal.headers,
    'Content-Length': Buffer.byteLength(refusal.body),
    ...(retryAfterS !== undefined && { 'Retry-After': retryAfterS }),
  });
  response.end(refusal.body);
}

/** The same without an end: the error's beginning, then text for as long as somebody reads. */
function refuseEndlessly({ call, response }: Exchange, { status, headers, body }: Refusal): Promise<void> {
  call.status = status;
  response.writeHead(status, headers);
  return sendEndlessly(response, body.slice(0, Math.floor(body.length / 2)), endlessText);
}

const webPage =
  '<!DOCTYPE html><html><head><title>Simulator</title></head><body><p>A web page, as a captive portal would send it.</p></body></html>\n';

async function reply(exchange: Exchange, behaviour: ReplyBehaviour): Promise<void> {
  const { call, turns, format, response } = exchange;
  if (behaviour.delayMs > 0) await pause(behaviour.delayMs, response);
  if (response.destroyed) return;
  call.status = 200;
  call.cutBySimulator = behaviour.delivery === 'reset';
  await deliver(response, {
    format,
    behaviour,
    reply: composeReply(call, turns, behaviour),
    stream: call.facts.stream,
  });
}

/** Whether it is not, or no longer, this call's turn to fail. */
function isUsedUp(
  { call, failures }: Exchange,
  { after = 0, times }: Pick<ErrorBehaviour, 'after' | 'times'>,
): boolean {
  if (after === 0 && times === Number.POSITIVE_INFINITY) return false;
  const key = `${call.provider}/${call.model}`;
  const turn = failures.get(key) ?? 0;
  if (turn >= after + times) return true;
  failures.set(key, turn + 1);
  return turn < after;
}

function breakStream({ call, turns, format, response }: Exchange): void {
  const { opening, deltas } = format.stream(composeReply(call, turns, echoBehaviour));
  call.status = 200;
  response.writeHead(200, { 'Content-Type': format.streamType, ...format.headers(call.id) });
  const begun = [...opening, ...deltas.slice(0, Math.ceil(deltas.length / 2))];
  for (const frame of begun) response.write(frame);
  response.end(format.streamError());
}

function succeed({ call, format, response }: Exchange, type: string, body: string | Buffer): void {
  call.status = 200;
  response.writeHead(200, { 'Content-Type': type, ...format.headers(call.id) });
  response.end(body);
}
