import type { Role } from '../../../shared/contract.js';
import type { Turn } from '../../../shared/conversation.js';
import { type BlockFrames, joinBlocks, type WrittenBlock } from '../blocks.js';
import { givenFields, type JsonObject } from '../json.js';
import { decodeSegment } from '../path-segment.js';
import type { Refusal } from '../refusal.js';
import type {
  CallParameters,
  Ending,
  Reply,
  RequestHead,
  Route,
  StreamFrames,
  WireFormat,
} from '../wire-format.js';
import { bedrockError, bedrockErrors } from './errors.js';
import { eventFrame, withWrongChecksum } from './event-frame.js';
import { bedrockPartRules } from './part-rules.js';
import {
  hasForeignBedrockThinking,
  readBedrockContent,
  readBedrockTools,
  writeBedrockCalls,
  writeBedrockThinking,
} from './parts.js';
import { checkBedrockRequest } from './rules.js';
import type { BedrockBlock, BedrockBody } from './shapes.js';

const guardrailText = 'Sorry, the model cannot answer this question.';
const signature =
  /^AWS4-HMAC-SHA256 Credential=[^/,\s]+\/\d{8}\/[^/,\s]+\/bedrock\/aws4_request, ?SignedHeaders=[^,\s]+, ?Signature=[0-9a-f]{64}$/;

/** Amazon Bedrock's Converse and ConverseStream; signatures must be well-formed but are not verified. */
export const bedrockFormat: WireFormat = {
  provider: 'bedrock',
  streamType: 'application/vnd.amazon.eventstream',
  garbage: { whole: { unexpected: true }, frame: eventFrame('unexpectedEvent', { unexpected: true }) },
  errors: bedrockErrors,
  owns: ({ path }) => path.startsWith('/model/'),
  route: readRoute,
  authenticate({ headers: { authorization, ...headers } }) {
    if (authorization === undefined) {
      return bedrockError(403, 'MissingAuthenticationTokenException', 'Missing Authentication Token');
    }
    if (/^Bearer \S+$/.test(authorization)) return undefined;
    if (signature.test(authorization) && headers['x-amz-date'] !== undefined) return undefined;
    return bedrockError(
      403,
      'IncompleteSignatureException',
      "Authorization header requires 'Credential', 'Signature' and 'SignedHeaders' parameters and either a 'X-Amz-Date' or a 'Date' header.",
    );
  },
  validate: checkBedrockRequest,
  turns: (body) => readTurns(body as unknown as WireRequest),
  parameters: readParameters,
  partRules: bedrockPartRules,
  hasForeignSignature: hasForeignBedrockThinking,
  headers: (callId) => ({ 'x-amzn-requestid': `sim-${callId}` }),
  reply: (reply) => ({
    output: { message: { role: 'assistant', content: writeBlocks(reply).map(({ whole }) => whole) } },
    stopReason: writeStopReason(reply),
    ...writeMetadata(reply),
  }),
  stream: writeFrames,
  malformed: () =>
    withWrongChecksum(eventFrame('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'x' } })),
  streamError: () =>
    eventFrame(
      'modelStreamErrorException',
      { message: 'An error occurred while streaming the response.', originalStatusCode: 500 },
      'exception',
    ),
};

function readRoute({ method, path }: RequestHead): Route | Refusal {
  const [, segment, operation] = /^\/model\/([^/]+)\/(converse|converse-stream)$/.exec(path) ?? [];
  const model = decodeSegment(segment);
  if (model === undefined || method !== 'POST') {
    return bedrockError(404, 'UnknownOperationException', `No operation at ${method} ${path}`);
  }
  return { model, stream: operation === 'converse-stream' };
}

interface WireRequest extends JsonObject {
  system?: BedrockBlock[];
  messages: { role: Role; content: BedrockBlock[] }[];
}

function readTurns({ system, messages }: WireRequest): Turn[] {
  const turns = messages.map(({ role, content }) => ({ role, content: readBedrockContent(content) }));
  return system === undefined || system.length === 0
    ? turns
    : [{ role: 'system', content: readBedrockContent(system) }, ...turns];
}

function readParameters(body: JsonObject): CallParameters {
  const { maxTokens, temperature, topP, stopSequences } = (body.inferenceConfig ?? {}) as JsonObject;
  const stop = stopSequences as string[] | undefined;
  const basic = { maxOutputTokens: maxTokens, temperature, topP, stop };
  return givenFields({ ...basic, ...readBedrockTools(body as BedrockBody) });
}

const stopReasons: Partial<Record<Ending, string>> = {
  length: 'max_tokens',
  blocked: 'guardrail_intervened',
  'blocked-reply': 'content_filtered',
  refused: 'content_filtered',
};

function writeStopReason({ ending, stoppedBy, calls }: Reply): string {
  const finished = calls.length > 0 ? 'tool_use' : 'end_turn';
  return stopReasons[ending] ?? (stoppedBy === undefined ? finished : 'stop_sequence');
}

/** The blocks of a reply; its text is one, unless there are calls alone. */
function writeBlocks(reply: Reply): WrittenBlock[] {
  const { ending, text, pieces, calls } = reply;
  const textBlock = (whole: string, texts: readonly string[]): WrittenBlock => ({
    whole: { text: whole },
    deltas: texts.map((piece) => ({ text: piece })),
  });
  // A guardrail answers with the text its owner configured, so a blocked answer is not an empty one.
  if (ending === 'blocked') return [textBlock(guardrailText, [guardrailText])];
  if (ending === 'empty' || ending === 'refused') return [];
  const said = text === '' && calls.length > 0 ? [] : [textBlock(text, pieces)];
  return [...writeBedrockThinking(reply), ...said, ...writeBedrockCalls(reply)];
}

function writeMetadata({ inputTokens, outputTokens, hasUsage }: Reply): object {
  return {
    ...(hasUsage && { usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens } }),
    metrics: { latencyMs: 1 },
  };
}

function writeFrames(reply: Reply): StreamFrames {
  const { opening, deltas, closing } = joinBlocks(writeBlocks(reply).map(writeBlock));
  return {
    opening: [eventFrame('messageStart', { role: 'assistant' }), ...opening],
    deltas,
    closing: [
      ...closing,
      eventFrame('messageStop', { stopReason: writeStopReason(reply) }),
      eventFrame('metadata', writeMetadata(reply)),
    ],
  };
}

function writeBlock({ start, deltas }: WrittenBlock, contentBlockIndex: number): BlockFrames {
  return {
    start: start ? eventFrame('contentBlockStart', { contentBlockIndex, start }) : '',
    deltas: deltas.map((delta) => eventFrame('contentBlockDelta', { contentBlockIndex, delta })),
    stop: eventFrame('contentBlockStop', { contentBlockIndex }),
  };
}
