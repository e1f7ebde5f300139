import type { Role, Turn } from '../../../shared/contract.js';
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
import { checkBedrockRequest } from './rules.js';

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
  headers: (callId) => ({ 'x-amzn-requestid': `sim-${callId}` }),
  reply: (reply) => ({
    output: { message: { role: 'assistant', content: writeContent(reply) } },
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
  system?: { text?: string }[];
  messages: { role: Role; content: { text?: string }[] }[];
}

function readTurns({ system, messages }: WireRequest): Turn[] {
  const turns = messages.map(({ role, content }) => ({ role, content: joinTexts(content) }));
  return system === undefined || system.length === 0
    ? turns
    : [{ role: 'system', content: joinTexts(system) }, ...turns];
}

function joinTexts(blocks: { text?: string }[]): string {
  return blocks.map((block) => block.text ?? '').join('');
}

function readParameters({ inferenceConfig }: JsonObject): CallParameters {
  const { maxTokens, temperature, topP, stopSequences } = (inferenceConfig ?? {}) as JsonObject;
  const stop = stopSequences as string[] | undefined;
  return givenFields({ maxOutputTokens: maxTokens, temperature, topP, stop });
}

const stopReasons: Partial<Record<Ending, string>> = {
  length: 'max_tokens',
  blocked: 'guardrail_intervened',
  'blocked-reply': 'content_filtered',
  refused: 'content_filtered',
};

function writeStopReason({ ending, stoppedBy }: Reply): string {
  return stopReasons[ending] ?? (stoppedBy === undefined ? 'end_turn' : 'stop_sequence');
}

function writeContent({ ending, text }: Reply): object[] {
  // A guardrail answers with the text its owner configured, so a blocked answer is not an empty one.
  if (ending === 'blocked') return [{ text: guardrailText }];
  return ending === 'empty' || ending === 'refused' ? [] : [{ text }];
}

function writeMetadata({ inputTokens, outputTokens, hasUsage }: Reply): object {
  return {
    ...(hasUsage && { usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens } }),
    metrics: { latencyMs: 1 },
  };
}

function writeFrames(reply: Reply): StreamFrames {
  const pieces = reply.ending === 'blocked' ? [guardrailText] : reply.pieces;
  const hasBlock = writeContent(reply).length > 0;
  return {
    opening: [eventFrame('messageStart', { role: 'assistant' })],
    deltas: pieces.map((text) => eventFrame('contentBlockDelta', { contentBlockIndex: 0, delta: { text } })),
    closing: [
      ...(hasBlock ? [eventFrame('contentBlockStop', { contentBlockIndex: 0 })] : []),
      eventFrame('messageStop', { stopReason: writeStopReason(reply) }),
      eventFrame('metadata', writeMetadata(reply)),
    ],
  };
}
