import { stopReasonOf } from '../claude.js';
import { decodeSegment, joinBlocks, type WrittenBlock } from '../frames.js';
import type { Frame, Refusal, Reply, RequestHead, Route, WireFormat } from '../wire-format.js';
import * as body from './body.js';
import { bedrockError, bedrockErrors } from './errors.js';
import { eventFrame, withWrongChecksum } from './event-frame.js';

const signature =
  /^AWS4-HMAC-SHA256 Credential=[^/,\s]+\/\d{8}\/[^/,\s]+\/bedrock\/aws4_request, ?SignedHeaders=[^,\s]+, ?Signature=[0-9a-f]{64}$/;

/** Amazon Bedrock's Converse and ConverseStream; signatures must be well-formed but are not verified. */
export const bedrockFormat: WireFormat = {
  provider: 'bedrock',
  streamType: 'application/vnd.amazon.eventstream',
  garbage: eventFrame('unexpectedEvent', { unexpected: true }),
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
      'Authorization header requires more parameters.',
    );
  },
  validate: (sent) => body.checkBedrockRequest(sent as unknown as body.BedrockBody),
  cacheBlocks: (sent) => body.readBedrockCacheBlocks(sent as unknown as body.BedrockBody),
  turns: (sent) => body.readBedrockTurns(sent as unknown as body.BedrockBody),
  parameters: (sent) => body.readBedrockParameters(sent as unknown as body.BedrockBody),
  partRules: body.bedrockPartRules,
  signatureOf: body.bedrockSignatureOf,
  headers: (callId) => ({ 'x-amzn-requestid': `sim-${callId}` }),
  reply: (reply) => ({
    output: {
      message: { role: 'assistant', content: body.writeBedrockBlocks(reply).map(({ whole }) => whole) },
    },
    stopReason: stopReasonOf(reply, stopReasons),
    ...writeMetadata(reply),
  }),
  stream: (reply) =>
    joinBlocks(
      [eventFrame('messageStart', { role: 'assistant' })],
      body.writeBedrockBlocks(reply).map(writeBlock),
      [
        eventFrame('messageStop', { stopReason: stopReasonOf(reply, stopReasons) }),
        eventFrame('metadata', writeMetadata(reply)),
      ],
    ),
  malformed: () =>
    withWrongChecksum(eventFrame('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'x' } })),
  // Converse has no pings, but frames of thinking, which may have no text (`ReasoningContentBlockDelta` of the SDK).
  lifeSign(of) {
    if (of !== 'thinking') return undefined;
    const delta = { reasoningContent: { text: '' } };
    return eventFrame('contentBlockDelta', { contentBlockIndex: 0, delta });
  },
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

const stopReasons = {
  blocked: 'guardrail_intervened',
  'blocked-reply': 'content_filtered',
  refused: 'content_filtered',
};

/** Tokens that are read from the cache or written to it are not in `inputTokens`. */
function writeMetadata(reply: Reply): object {
  const { inputTokens, outputTokens, cachedTokens, cacheWriteTokens, hasUsage } = reply;
  const usage = {
    inputTokens: inputTokens - cachedTokens - cacheWriteTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cacheReadInputTokens: cachedTokens,
    cacheWriteInputTokens: cacheWriteTokens,
  };
  return { ...(hasUsage && { usage }), metrics: { latencyMs: 1 } };
}

const writeBlock = ({ start, deltas }: WrittenBlock, contentBlockIndex: number): Frame[] => [
  start ? eventFrame('contentBlockStart', { contentBlockIndex, start }) : '',
  ...deltas.map((delta) => eventFrame('contentBlockDelta', { contentBlockIndex, delta })),
  eventFrame('contentBlockStop', { contentBlockIndex }),
];
