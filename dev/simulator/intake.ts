import type { IncomingHttpHeaders } from 'node:http';
import { isObject, type JsonObject, readJson } from '../../shared/json/json.js';
import { anthropicFormat } from './anthropic/format.js';
import { bedrockFormat } from './bedrock/format.js';
import type { Accepted, CallFacts } from './calls.js';
import { findBehaviour } from './model-names.js';
import { openAiFormat } from './openai/format.js';
import { findPartFault } from './part-rules.js';
import { responsesFormat } from './responses/format.js';
import { vertexFormat } from './vertexai/format.js';
import type { Refusal, RequestHead, Route, WireFormat } from './wire-format.js';

// OpenAI comes last: it owns all other addresses under /v1.
const formats: WireFormat[] = [anthropicFormat, vertexFormat, bedrockFormat, responsesFormat, openAiFormat];
const credentialHeaders = ['authorization', 'x-api-key', 'x-goog-api-key'];
const secretHeaders = new Set([
  ...credentialHeaders,
  'x-amz-security-token',
  'proxy-authorization',
  'cookie',
]);

/** The wire format of the provider that a request is addressed to, if any. */
export function findFormat(head: RequestHead): WireFormat | undefined {
  return formats.find((format) => format.owns(head));
}

/** Checks a request by its provider's rules, in the provider's order: address, credentials, JSON, shape, model. */
export function examine(format: WireFormat, head: RequestHead, bytes: Buffer) {
  const { method, url, headers } = head;
  const body = readJson(bytes.toString());
  const route = format.route(head);
  const target = readTarget(route, body);
  const verdict = judge(format, head, { route, body, model: target.model });
  const { turns, parameters } = 'turns' in verdict ? verdict : {};
  return {
    facts: {
      provider: format.provider,
      ...target,
      method,
      path: url,
      hasCredentials: credentialHeaders.some((name) => headers[name] !== undefined),
      traceparent: headers.traceparent?.toString(),
      receivedAt: Date.now(),
    },
    content: { body, turns, parameters, bytes: bytes.length, raw: bytes, headers: withoutSecrets(headers) },
    verdict,
  };
}

const withoutSecrets = (headers: IncomingHttpHeaders): IncomingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !secretHeaders.has(name)));

function judge(
  format: WireFormat,
  head: RequestHead,
  { route, body, model }: { route: Route | Refusal; body: unknown; model: string | undefined },
): Refusal | Accepted {
  if ('status' in route) return route;
  const refusal = format.authenticate(head) ?? checkMediaType(format, head);
  if (refusal !== undefined) return refusal;
  if (!isObject(body)) return format.errors.json();
  const { errors } = format;
  const read = readBody(format, body, head);
  if ('status' in read) return read;
  const fault = findPartFault(format.partRules, read.turns, read.parameters);
  if (fault !== undefined) return errors.wrong(...fault);
  if (model === undefined) return errors.wrong(['model'], 'a text');
  const behaviour = findBehaviour(model);
  return behaviour === undefined ? errors.model(model, head.path) : { ...read, behaviour };
}

/** A body in our words. Its shape is not checked: what cannot be read is refused like what must not be. */
function readBody(format: WireFormat, body: JsonObject, head: RequestHead) {
  try {
    return (
      format.validate?.(body, head) ?? { turns: format.turns(body), parameters: format.parameters(body) }
    );
  } catch (error) {
    if (error instanceof TypeError) return format.errors.wrong([], 'another shape');
    throw error;
  }
}

function checkMediaType({ errors }: WireFormat, { headers }: RequestHead): Refusal | undefined {
  const received = headers['content-type'] ?? '';
  return /^application\/json\s*(;|$)/i.test(received) ? undefined : errors.contentType(received);
}

function readTarget(route: Route | Refusal, body: unknown): Pick<CallFacts, 'model' | 'stream'> {
  const { model, stream }: JsonObject = isObject(body) ? body : {};
  const named = 'status' in route ? {} : route;
  return {
    model: named.model ?? (typeof model === 'string' ? model : undefined),
    stream: named.stream ?? stream === true,
  };
}
