import type { Turn } from '../../../shared/contract.js';
import { givenFields, type JsonObject, serverSentEvent } from '../json.js';
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
import { pageNotFound, vertexError, vertexErrorBody, vertexErrors } from './errors.js';
import { checkVertexRequest } from './rules.js';

const operation =
  /^\/v1(?:beta1)?\/(?:projects\/[^/]+\/locations\/[^/]+\/)?publishers\/google\/models\/([^/:]+):(generateContent|streamGenerateContent)$/;

/** Vertex AI's generateContent and streamGenerateContent, with a project or in express mode. */
export const vertexFormat: WireFormat = {
  provider: 'vertexai',
  streamType: 'text/event-stream',
  garbage: { whole: { unexpected: true }, frame: serverSentEvent({ unexpected: true }) },
  errors: vertexErrors,
  owns: ({ path }) => /^\/v1(beta1)?\/(projects|publishers)\//.test(path),
  route: readRoute,
  authenticate({ headers }) {
    if (/^Bearer \S+$/.test(headers.authorization ?? '') || headers['x-goog-api-key']) return undefined;
    return vertexError(
      401,
      'Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.',
      [
        {
          '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
          reason: 'CREDENTIALS_MISSING',
          domain: 'googleapis.com',
        },
      ],
    );
  },
  validate: checkVertexRequest,
  turns: (body) => readTurns(body as unknown as WireRequest),
  parameters: readParameters,
  headers: () => ({ vary: 'X-Origin, Referer' }),
  reply: (reply) => ({ ...writeAnswer(reply, reply.text), ...writeFacts(reply) }),
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

interface WireContent {
  role: 'user' | 'model';
  parts: { text?: string }[];
}

interface WireRequest extends JsonObject {
  systemInstruction?: WireContent;
  contents: WireContent[];
}

function readTurns({ systemInstruction, contents }: WireRequest): Turn[] {
  const turns = contents.map(
    (content): Turn => ({
      role: content.role === 'model' ? 'assistant' : 'user',
      content: joinTexts(content),
    }),
  );
  return systemInstruction === undefined
    ? turns
    : [{ role: 'system', content: joinTexts(systemInstruction) }, ...turns];
}

function joinTexts({ parts }: WireContent): string {
  return parts.map((part) => part.text ?? '').join('');
}

function readParameters({ generationConfig }: JsonObject): CallParameters {
  const { stopSequences, ...config } = (generationConfig ?? {}) as JsonObject;
  const { maxOutputTokens, temperature, topP, seed, frequencyPenalty, presencePenalty } = config;
  const stop = stopSequences as string[] | undefined;
  return givenFields({ maxOutputTokens, temperature, topP, stop, seed, frequencyPenalty, presencePenalty });
}

const finishReasons: Partial<Record<Ending, string>> = {
  length: 'MAX_TOKENS',
  'blocked-reply': 'SAFETY',
  refused: 'PROHIBITED_CONTENT',
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
function writeAnswer({ ending }: Reply, text: string): object {
  if (ending === 'empty') return {};
  if (ending === 'blocked') return { promptFeedback: { blockReason: 'SAFETY', safetyRatings } };
  const finishReason = finishReasons[ending] ?? 'STOP';
  if (ending === 'refused') return { candidates: [{ index: 0, finishReason }] };
  const content = ending === 'null' ? { role: 'model' } : { role: 'model', parts: [{ text }] };
  const ratings = ending === 'blocked-reply' ? { safetyRatings } : {};
  return { candidates: [{ index: 0, content, finishReason, ...ratings }] };
}

function writeFacts({ callId, model, createdAt, inputTokens, outputTokens, hasUsage }: Reply): object {
  return {
    ...(hasUsage && {
      usageMetadata: {
        promptTokenCount: inputTokens,
        candidatesTokenCount: outputTokens,
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
  const deltas = reply.pieces.map((text) =>
    serverSentEvent({ candidates: [{ index: 0, content: { role: 'model', parts: [{ text }] } }], ...facts }),
  );
  // The chunk that ends a stream has a part of its own, usually an empty one.
  const end = serverSentEvent({ ...writeAnswer(reply, ''), ...writeFacts(reply) });
  return { opening: [], deltas, closing: [end] };
}
