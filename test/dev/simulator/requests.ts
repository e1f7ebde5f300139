import type { ProviderId } from '../../../shared/contract.js';

/** A request that a test can bend before it sends it. */
export interface TestRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: Record<string, unknown>;
}

interface Asked {
  model?: string;
  stream?: boolean;
  text?: string;
}

/** A valid request of one user turn. */
export function validRequest(provider: ProviderId, asked: Asked = {}): TestRequest {
  const { model = 'sim-echo', stream = false, text = 'Hello' } = asked;
  return { method: 'POST', ...build[provider](model, stream, text) };
}

/** Sends a request to a simulator. */
export function send(url: string, request: TestRequest, signal?: AbortSignal): Promise<Response> {
  const { method, path, headers, body } = request;
  const withBody = method === 'GET' ? {} : { body: JSON.stringify(body) };
  return fetch(url + path, { method, headers, ...withBody, signal: signal ?? null });
}

const json = { 'content-type': 'application/json' };
const signature = `AWS4-HMAC-SHA256 Credential=AK/20260101/us-east-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature=${'0'.repeat(64)}`;

type Build = (model: string, stream: boolean, text: string) => Omit<TestRequest, 'method'>;

const build: Record<ProviderId, Build> = {
  openai: (model, stream, text) => ({
    path: '/v1/chat/completions',
    headers: { ...json, authorization: 'Bearer key' },
    body: { model, stream, messages: [{ role: 'user', content: text }] },
  }),
  anthropic: (model, stream, text) => ({
    path: '/v1/messages',
    headers: { ...json, 'x-api-key': 'key', 'anthropic-version': '2023-06-01' },
    body: { model, stream, max_tokens: 100, messages: [{ role: 'user', content: text }] },
  }),
  bedrock: (model, stream, text) => ({
    path: `/model/${encodeURIComponent(model)}/${stream ? 'converse-stream' : 'converse'}`,
    headers: { ...json, authorization: signature, 'x-amz-date': '20260101T000000Z' },
    body: { messages: [{ role: 'user', content: [{ text }] }] },
  }),
  vertexai: (model, stream, text) => ({
    path: `/v1beta1/projects/p/locations/l/publishers/google/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    headers: { ...json, authorization: 'Bearer token' },
    body: { contents: [{ role: 'user', parts: [{ text }] }] },
  }),
};
