import { decodeSegment, serverSentEvent } from '../frames.js';
import { sign, signText } from '../seals.js';
import type { Ending, Refusal, Reply, RequestHead, Route, StreamFrames, WireFormat } from '../wire-format.js';
import * as body from './body.js';
import { pageNotFound, vertexError, vertexErrorBody, vertexErrors } from './errors.js';

const operation =
  /^\/v1(?:beta1)?\/(?:projects\/[^/]+\/locations\/[^/]+\/)?publishers\/google\/models\/([^/:]+):(generateContent|streamGenerateContent)$/;

const credentialsMissing = {
  '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
  reason: 'CREDENTIALS_MISSING',
  domain: 'googleapis.com',
};

/** Vertex AI's generateContent and streamGenerateContent, with a project or in express mode. */
export const vertexFormat: WireFormat = {
  provider: 'vertexai',
  streamType: 'text/event-stream',
  garbage: serverSentEvent({ unexpected: true }),
  errors: vertexErrors,
  owns: ({ path }) => /^\/v1(beta1)?\/(projects|publishers)\//.test(path),
  route: readRoute,
  authenticate({ headers }) {
    if (/^Bearer \S+$/.test(headers.authorization ?? '') || headers['x-goog-api-key']) return undefined;
    return vertexError(401, 'Request is missing required authentication credential.', [credentialsMissing]);
  },
  turns: (sent) => body.readVertexTurns(sent as unknown as body.VertexBody),
  parameters: (sent) => body.readVertexParameters(sent as unknown as body.VertexBody),
  partRules: body.vertexPartRules,
  signatureOf: sign,
  headers: () => ({ vary: 'X-Origin, Referer' }),
  reply: (reply) => ({ ...writeAnswer(reply, partsOfReply(reply)), ...writeFacts(reply) }),
  stream: writeChunks,
  malformed: () => 'data: {"unfinished\n\n',
  streamError: () => serverSentEvent(vertexErrorBody(503, 'The service is currently unavailable.')),
};

function readRoute({ method, path, query }: RequestHead): Route | Refusal {
  const [, segment, action] = operation.exec(path) ?? [];
  const model = decodeSegment(segment);
  if (model === undefined || method !== 'POST') return pageNotFound(path);
  const stream = action === 'streamGenerateContent';
  if (stream && query.get('alt') !== 'sse') {
    return vertexError(400, 'The simulator streams server-sent events only: add ?alt=sse.');
  }
  return { model, stream };
}

const finishReasons: Partial<Record<Ending, string>> = {
  length: 'MAX_TOKENS',
  'blocked-reply': 'SAFETY',
  refused: 'PROHIBITED_CONTENT',
  continues: 'CONTINUATION',
};
const safetyRatings = [
  {
    category: 'HARM_CATEGORY_DANGEROUS_CONTENT',
    probability: 'HIGH',
    severity: 'HARM_SEVERITY_HIGH',
    blocked: true,
  },
];

/** The part of an answer that differs by ending: feedback on the prompt, a candidate, or nothing. */
function writeAnswer({ ending, endsAs, request }: Reply, parts: object[]): object {
  if (ending === 'empty') return {};
  if (ending === 'blocked') return { promptFeedback: { blockReason: 'SAFETY', safetyRatings } };
  const finishReason = endsAs ?? finishReasons[ending] ?? 'STOP';
  if (ending === 'refused') return { candidates: [{ index: 0, finishReason }] };
  const content = ending === 'null' ? { role: 'model' } : { role: 'model', parts };
  const ratings = ending === 'blocked-reply' ? { safetyRatings } : {};
  const continuationToken = body.tokenOf(body.hopOf(request.continuationToken) + 1);
  const token = ending === 'continues' && { continuationToken };
  return { candidates: [{ index: 0, content, finishReason, ...ratings, ...token }] };
}

/** The text and the calls of a reply; an empty text only where there are no calls. */
function partsOfReply(reply: Reply): object[] {
  const calls = body.writeVertexCalls(reply);
  const textPart = { text: reply.text, ...signatureOfText(reply) };
  return [...writeThoughts(reply), ...(reply.text === '' && calls.length > 0 ? [] : [textPart]), ...calls];
}

/** The signature of a text behind thinking; a stream has it on a part of its own: https://ai.google.dev/gemini-api/docs/thought-signatures */
const signatureOfText = ({ text, isSigned, thoughts }: Reply) =>
  text === '' || (!isSigned && thoughts.length === 0) ? undefined : { thoughtSignature: signText(text) };

/** Its thinking, where `includeThoughts` asks for it; else nothing is sent while it thinks. */
const writeThoughts = ({ thoughts }: Reply): object[] =>
  thoughts.flatMap(({ text }) => (text === '' ? [] : [{ text, thought: true }]));

function writeFacts(reply: Reply): object {
  const { callId, model, createdAt, inputTokens, outputTokens, reasoningTokens, hasUsage } = reply;
  return {
    ...(hasUsage && {
      usageMetadata: {
        promptTokenCount: inputTokens,
        candidatesTokenCount: outputTokens - reasoningTokens,
        ...(reasoningTokens > 0 && { thoughtsTokenCount: reasoningTokens }),
        totalTokenCount: inputTokens + outputTokens,
        trafficType: 'ON_DEMAND',
      },
    }),
    modelVersion: model,
    createTime: new Date(createdAt).toISOString(),
    responseId: `sim${callId}`,
  };
}

function writeChunks(reply: Reply): StreamFrames {
  const facts = { modelVersion: reply.model, responseId: `sim${reply.callId}` };
  const chunk = (part: object) =>
    serverSentEvent({ candidates: [{ index: 0, content: { role: 'model', parts: [part] } }], ...facts });
  const calls = body.writeVertexCalls(reply);
  // A call comes whole: instead of its other pieces there are empty texts, which take as long.
  const waits = reply.isSlow ? reply.calls.flatMap(({ pieces }) => pieces.slice(1).map(() => '')) : [];
  // The chunk that ends a stream has a part of its own, usually an empty one.
  const end = serverSentEvent({ ...writeAnswer(reply, [{ text: '' }]), ...writeFacts(reply) });
  const signature = signatureOfText(reply);
  const parts = [
    ...writeThoughts(reply),
    ...reply.pieces.map((text) => ({ text })),
    ...(signature ? [{ text: '', ...signature }] : []),
    ...calls,
    ...waits.map((text) => ({ text })),
  ];
  return { opening: [], deltas: parts.map(chunk), closing: [end] };
}
