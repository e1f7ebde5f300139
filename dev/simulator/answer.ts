import type { ServerResponse } from 'node:http';
import { type Part, partsOf, type Turn } from '../../shared/conversation.js';
import { type Behaviour, type ErrorBehaviour, echoBehaviour, type ReplyBehaviour } from './behaviour.js';
import { findBreaches } from './binding.js';
import type { Call } from './call.js';
import { composeReply } from './compose.js';
import { deliver, endlessText, pause, sendBeginning, sendEndlessly } from './deliver.js';
import { countTokens, sizeOf } from './echo.js';
import type { CallParameters } from './exchange.js';
import type { Gates } from './gates.js';
import type { PromptCaches } from './prompt-caches.js';
import { type ErrorBodies, firstRefusal, type Refusal } from './refusal.js';
import { hasForeignSignature } from './signature.js';
import type { WireFormat } from './wire-format.js';

/** A valid call, and what is needed to answer it. */
export interface Exchange {
  readonly call: Call;
  readonly turns: readonly Turn[];
  readonly parameters: CallParameters;
  readonly format: WireFormat;
  readonly response: ServerResponse;
  /** Calls by provider and model, for behaviours that depend on the number of a call. */
  readonly callNumbers: Map<string, number>;
  readonly gates: Gates;
  readonly caches: PromptCaches;
}

/** Answers a call as its behaviour says. Resolves when nothing more will be sent. */
export async function answer(exchange: Exchange, behaviour: Behaviour): Promise<void> {
  const { format, call, response } = exchange;
  switch (behaviour.kind) {
    case 'reply':
      return reply(exchange, behaviour);
    case 'error':
      return isSpared(exchange, behaviour)
        ? reply(exchange, echoBehaviour)
        : refuse(exchange, format.errors.status(behaviour.status), behaviour.retryAfterS);
    case 'denied':
      return isSpared(exchange, behaviour)
        ? reply(exchange, echoBehaviour)
        : refuse(exchange, format.errors.denied(call.model ?? ''));
    case 'endless-error':
      return refuseEndlessly(exchange, format.errors.status(behaviour.status));
    case 'quota':
      return refuse(exchange, format.errors.quotas[behaviour.place - 1] ?? format.errors.status(429));
    case 'not-ready':
      return refuse(exchange, format.errors.notReady());
    case 'context':
      return replyWithin(exchange, behaviour.maxTokens);
    case 'hang':
      return isSpared(exchange, behaviour) ? reply(exchange, echoBehaviour) : undefined;
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
      return call.facts.stream
        ? breakStream(exchange, behaviour.reply)
        : refuse(exchange, format.errors.status(500));
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

/** Refuses with a body that never ends: half of the error's, then text for as long as the client reads. */
function refuseEndlessly({ call, response }: Exchange, { status, headers, body }: Refusal): Promise<void> {
  call.status = status;
  response.writeHead(status, headers);
  return sendEndlessly(response, body.slice(0, Math.floor(body.length / 2)), endlessText);
}

const webPage =
  '<!DOCTYPE html><html><head><title>Simulator</title></head><body><p>A web page, as a captive portal would send it.</p></body></html>\n';

async function reply(exchange: Exchange, behaviour: ReplyBehaviour): Promise<void> {
  const { call, format, response } = exchange;
  const refusal = findRefusal(exchange, behaviour) ?? checkThinking(exchange, behaviour.unboundThinking);
  if (refusal !== undefined) return refuse(exchange, refusal);
  const pass = () => exchange.gates.pass(call.model ?? '', response);
  const waitMs = behaviour.delayMs + (call.facts.stream ? 0 : (behaviour.lull?.ms ?? 0));
  if (waitMs > 0) await pause(waitMs, response);
  if (behaviour.delivery === 'gated' && (!call.facts.stream || behaviour.afterDeltas === 0)) await pass();
  if (response.destroyed) return;
  call.status = 200;
  call.cutBySimulator = behaviour.delivery === 'reset';
  await deliver(response, {
    format,
    behaviour,
    reply: composeReply(exchange, behaviour),
    stream: call.facts.stream,
    pass,
  });
}

/** The parameters that only tune a reply, and the values that do not even do that. */
const hints = {
  temperature: 1,
  topP: 1,
  seed: undefined,
  frequencyPenalty: 0,
  presencePenalty: 0,
  reasoningEffort: undefined,
  verbosity: undefined,
  parallelToolCalls: true,
};

/** The error for what a model of this behaviour does not take. */
function findRefusal(
  { call, format: { errors, signatureOf, failsInReply }, parameters, turns }: Exchange,
  { refuses, ending }: ReplyBehaviour,
): Refusal | undefined {
  const { toolChoice: choice } = parameters;
  switch (refuses) {
    case undefined:
      return ending === 'failed' && !failsInReply ? errors.status(500) : undefined;
    case 'hints':
      return refuseHint(errors, parameters);
    case 'lost-reasoning':
      return hasLostThinking(turns) ? errors.lostReasoning?.() : undefined;
    case 'effort':
      return errors.effort?.(parameters, call.model ?? '');
    case 'forced-choice':
      return choice === 'required' || typeof choice === 'object' ? errors.forcedChoice?.() : undefined;
    case 'reasoning':
      return refuseThinking(errors, parameters, turns);
    case 'signature':
      if (!signatureOf || !turns.some((turn) => hasForeignSignature(turn, signatureOf))) return undefined;
      return errors.signature?.();
  }
}

/** The error of a model that does not think, for all that it does not have. */
function refuseThinking(errors: ErrorBodies, asked: CallParameters, turns: readonly Turn[]) {
  if (asked.wantsReasoning || has(turns.flatMap(partsOf), 'opaque')) return errors.reasoning?.();
  return asked.markedTurns === undefined ? undefined : errors.cache?.();
}

function refuseHint(errors: ErrorBodies, asked: CallParameters): Refusal | undefined {
  const names = Object.keys(hints) as (keyof typeof hints)[];
  const hint = names.find((name) => (asked[name] ?? hints[name]) !== hints[name]);
  return hint && errors.hint(hint, asked[hint]);
}

const hasLostThinking = (turns: readonly Turn[]): boolean =>
  turns.map(partsOf).some((parts) => has(parts, 'tool_call') && !has(parts, 'opaque'));

const has = (parts: readonly Part[], wanted: Part['type']): boolean =>
  parts.some(({ type }) => type === wanted);

/** The error for thinking that stands elsewhere than where it was made; what is dropped instead is counted. */
function checkThinking(exchange: Exchange, fate: ReplyBehaviour['unboundThinking']): Refusal | undefined {
  const { unbound } = exchange.format.errors;
  if (fate === undefined || unbound === undefined) return undefined;
  const breaches = findBreaches(exchange);
  exchange.call.droppedThinking = breaches.length;
  if (fate === 'refused') return firstRefusal(breaches, ({ place, breach }) => unbound(place, breach));
  return undefined;
}

/** An echo, or the provider's error when the conversation is longer than its model takes. */
function replyWithin(exchange: Exchange, maxTokens: number): Promise<void> | void {
  const inputTokens = countTokens(sizeOf(exchange.turns));
  if (inputTokens <= maxTokens) return reply(exchange, echoBehaviour);
  refuse(exchange, exchange.format.errors.tooLong(inputTokens, maxTokens));
}

/** Whether this call comes before or after those that fail. */
function isSpared(
  { call, callNumbers }: Exchange,
  { after = 0, times }: Pick<ErrorBehaviour, 'after' | 'times'>,
): boolean {
  if (after === 0 && times === Number.POSITIVE_INFINITY) return false;
  const key = `${call.provider}/${call.model}`;
  const number = callNumbers.get(key) ?? 0;
  if (number >= after + times) return true;
  callNumbers.set(key, number + 1);
  return number < after;
}

async function breakStream(exchange: Exchange, behaviour: ReplyBehaviour): Promise<void> {
  const { call, format, response } = exchange;
  const frames = format.stream(composeReply(exchange, behaviour));
  call.status = 200;
  response.writeHead(200, { 'Content-Type': format.streamType, ...format.headers(call.id) });
  await sendBeginning(response, frames, behaviour);
  response.end(format.streamError(call.id));
}

function succeed({ call, format, response }: Exchange, type: string, body: string | Buffer): void {
  call.status = 200;
  response.writeHead(200, { 'Content-Type': type, ...format.headers(call.id) });
  response.end(body);
}
