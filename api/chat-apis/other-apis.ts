import type { RequestHandler } from 'express';
import { Failure } from '../../shared/failures.js';
import { type SendFailure, sendFailuresBy } from '../http/problem.js';
import { sendAnthropicError } from './anthropic-messages/anthropic-error.js';
import type { Operation } from './chat-api.js';
import { sendOpenAiError } from './openai-chat/openai-error.js';

/** APIs that programs look for here and that this server does not have. */

const sendBody =
  (toBody: (message: string | undefined) => object): SendFailure =>
  (response, { status, facts }) =>
    response.status(status).json(toBody(facts.detail));

/** https://cloud.google.com/apis/design/errors */
const sendGoogleError = sendBody((message) => ({ error: { code: 404, message, status: 'NOT_FOUND' } }));
/** https://docs.ollama.com/api/errors */
const sendOllamaError = sendBody((error) => ({ error }));

const client = 'use a client of OpenAI’s chat completions, with a base address that ends with /v1';

/** Their addresses, also for those below them; what to do instead; the shape of their errors, if it is not OpenAI's. */
const otherApis: readonly (readonly [addresses: string, instead: string, send?: SendFailure])[] = [
  [
    '/v1/responses /v1/conversations',
    "use chat completions: setOpenAIAPI('chat_completions') in @openai/agents, useResponsesApi: false in LangChain, openai.chat(…) in the AI SDK",
  ],
  [
    '/v1/completions /v1/edits',
    'use chat completions, with messages: ChatOpenAI in LangChain, openai.chat(…) in the AI SDK',
  ],
  ['/v1/embeddings /v1/rerank', 'set another server for embeddings; chat completions are here'],
  ['/v1/assistants /v1/threads /v1/vector_stores', 'use chat completions, with tools'],
  [
    '/v1/images /v1/videos /v1/audio /v1/realtime /v1/moderations /v1/files /v1/uploads /v1/batches /v1/fine_tuning /v1/evals /v1/containers',
    'of OpenAI’s API it has chat completions and models',
  ],
  ['/v1/complete', 'of Anthropic’s API it has messages', sendAnthropicError],
  ['/v1beta /v1beta1 /v1alpha', `${client}, and a model such as vertexai/…`, sendGoogleError],
  ['/api/chat /api/generate /api/embed /api/tags /api/show', client, sendOllamaError],
];

const byAddress = new Map(
  otherApis.flatMap(([addresses, instead, send = sendOpenAiError]) =>
    addresses
      .split(' ')
      .map(
        (address) => [address, { hint: `This server does not have ${address}: ${instead}.`, send }] as const,
      ),
  ),
);

const rightBase = 'The base address of OpenAI’s API ends with one /v1 here.';

/**
 * Refuses requests for APIs that are not here, in the shape of theirs and with the way to do without, and requests for
 * `operations` behind a wrong base address. `bases` are the paths of chat and blog, which keep their own addresses.
 */
export function refuseOtherApis(
  operations: readonly Pick<Operation, 'method' | 'path'>[],
  bases: readonly string[],
): RequestHandler {
  const plain = operations.filter(({ path }) => !/[:*]/.test(path));
  const existing = new Set(plain.map(({ method, path }) => `${method.toUpperCase()} ${path}`));
  const wrongBases = ['/v1/v1', ...bases.filter((base) => base !== '' && base !== '/v1')];
  return ({ method, path }, response, next) => {
    const base = wrongBases.find((each) => path.startsWith(`${each}/`));
    const right = `/v1${path.slice(base?.length)}`;
    const there = base === undefined ? find(path) : undefined;
    const misplaced = method === 'POST' ? find(right) : undefined;
    const isMisplaced = misplaced !== undefined || existing.has(`${method} ${right}`);
    const { hint, send = sendOpenAiError } = there ?? misplaced ?? {};
    if (hint === undefined && !isMisplaced) return next();
    sendFailuresBy(response, send);
    next(new Failure('not_found', { detail: [hint ?? [], isMisplaced ? rightBase : []].flat().join(' ') }));
  };
}

/** The API that has the address, or one that the path is below. */
function find(path: string) {
  const [, first = '', second = ''] = path.split('/', 3);
  return byAddress.get(`/${first}/${second}`) ?? byAddress.get(`/${first}`);
}
