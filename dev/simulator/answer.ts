import { type Part, partsOf, type Turn } from '../../shared/conversation.js';
import type { Exchange } from './calls.js';
import { composeReply } from './compose.js';
import { deliver, endlessText, pause, sendEndlessly } from './deliver.js';
import { countTokens, sizeOf } from './echo.js';
import type { Behaviour } from './model-names.js';
import { direct } from './script.js';
import { findBreaches, hasForeignSignature } from './seals.js';
import { type CallParameters, type ErrorBodies, firstFault, type Refusal } from './wire-format.js';

/** Answers a call as its behaviour says. Resolves when nothing more will be sent. */
export async function answer(asked: Exchange): Promise<void> {
  const exchange = asked.behaviour.says === 'script' ? direct(asked) : asked;
  if ('status' in exchange) return refuse(asked, exchange);
  const { call, format, response, turns, behaviour } = exchange;
  const { errors, garbage, streamType } = format;
  const { fails, status, quota, maxTokens } = behaviour;
  if (fails === undefined || isSpared(exchange)) return reply(exchange);
  switch (fails) {
    case 'status':
      return refuse(exchange, errors.status(status), behaviour);
    case 'denied':
      return refuse(exchange, errors.denied(call.model ?? ''));
    case 'quota':
      return refuse(exchange, errors.quotas[quota - 1] ?? errors.status(429));
    case 'rejected':
      return refuse(exchange, reject(exchange));
    case 'not-ready':
      return refuse(exchange, errors.notReady());
    case 'too-long':
      return refuse(exchange, errors.tooLong(countTokens(sizeOf(turns)), maxTokens));
    case 'hang':
      return;
    case 'reset':
      call.cutBySimulator = true;
      response.socket?.resetAndDestroy();
      return;
    case 'html':
      return succeed(exchange, 'text/html; charset=utf-8', webPage);
    case 'misshapen':
      return call.facts.stream
        ? succeed(exchange, streamType, garbage)
        : succeed(exchange, 'application/json', JSON.stringify({ unexpected: true }));
  }
}

/** The error of a class, in the words of Claude where it is asked. */
function reject({ call, format: { errors }, behaviour: { rejection = '' } }: Exchange): Refusal {
  if (rejection === 'prompt_too_long') return errors.tooLong(207_368, 200_000);
  const [beta = ''] = String(call.headers?.['anthropic-beta'] ?? '').split(',');
  return errors.rejected?.(rejection, beta) ?? errors.wrong(['sim'], 'the name of a failure');
}

/** Whether this call is not one of those that fail. */
function isSpared({ call, callNumbers, turns, behaviour }: Exchange): boolean {
  const { after, times, fails, maxTokens } = behaviour;
  if (fails === 'too-long' && countTokens(sizeOf(turns)) <= maxTokens) return true;
  if (after === 0 && times === Number.POSITIVE_INFINITY) return false;
  const key = `${call.provider}/${call.model}`;
  const number = callNumbers.get(key) ?? 0;
  if (number >= after + times) return true;
  callNumbers.set(key, number + 1);
  return number < after;
}

/** Answers with an error in the provider's words; an endless one is half of it, and then text for ever. */
export function refuse(
  { call, response }: Pick<Exchange, 'call' | 'response'>,
  { status, headers, body }: Refusal,
  { delivery, retryAfterS }: Pick<Behaviour, 'delivery' | 'retryAfterS'> = { delivery: 'whole' },
): Promise<void> | void {
  call.status = status;
  const waits = retryAfterS !== undefined && { 'Retry-After': retryAfterS };
  if (delivery === 'endless') {
    response.writeHead(status, { ...headers, ...waits });
    return sendEndlessly(response, body.slice(0, body.length / 2), endlessText);
  }
  response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body), ...waits });
  response.end(body);
}

const webPage =
  '<!DOCTYPE html><html><head><title>Simulator</title></head><body><p>A web page, as a captive portal would send it.</p></body></html>\n';

function succeed({ call, format, response }: Exchange, type: string, body: string | Buffer): void {
  call.status = 200;
  response.writeHead(200, { 'Content-Type': type, ...format.headers(call.id) });
  response.end(body);
}

async function reply(exchange: Exchange): Promise<void> {
  const { call, response } = exchange;
  const { delivery, delayMs, workMs, afterDeltas } = exchange.behaviour;
  const { stream } = call.facts;
  const refusal = findRefusal(exchange) ?? checkThinking(exchange);
  if (refusal !== undefined) return refuse(exchange, refusal);
  await pause(delayMs + (stream ? 0 : workMs), call);
  if (delivery === 'gated' && (!stream || afterDeltas === 0)) await exchange.gates.pass(call);
  if (response.destroyed) return;
  call.status = 200;
  call.cutBySimulator = delivery === 'reset';
  await deliver(exchange, composeReply(exchange));
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
function findRefusal({ call, format, parameters, turns, behaviour }: Exchange): Refusal | undefined {
  const { errors, signatureOf, failsInReply } = format;
  const { refuses, ending, delivery } = behaviour;
  const { toolChoice: choice } = parameters;
  if (ending === 'failed' && !failsInReply) return errors.status(500);
  if (delivery === 'error' && !call.facts.stream) return errors.status(500);
  switch (refuses) {
    case undefined:
      return undefined;
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
  return asked.isMarked ? errors.cache?.() : undefined;
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
function checkThinking(exchange: Exchange): Refusal | undefined {
  const { unboundThinking: fate } = exchange.behaviour;
  const { unbound } = exchange.format.errors;
  if (fate === undefined || unbound === undefined) return undefined;
  const breaches = findBreaches(exchange);
  exchange.call.droppedThinking = breaches.length;
  if (fate === 'refused') return firstFault(breaches, ({ place, breach }) => unbound(place, breach));
  return undefined;
}
