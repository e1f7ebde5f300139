import type { CompletionToolCall } from '../../shared/contracts/completion-contract.ts';
import type { Role } from '../../shared/contracts/contract.ts';

/** The request. Empty texts mean the server's defaults. */
export interface PlaygroundRequest {
  readonly provider: string;
  readonly model: string;
  readonly fallback: string;
  /** Whole seconds. */
  readonly wait: string;
  readonly tool: ToolFields;
  readonly messages: readonly PlaygroundMessage[];
}

/** The fields of a tool; without a name there is none. */
export interface ToolFields {
  readonly name: string;
  readonly description: string;
  /** JSON text of a JSON Schema. */
  readonly parameters: string;
}

/** A message as OpenAI's API has it. */
export interface PlaygroundMessage {
  readonly role: Role | 'tool';
  readonly content: string;
  readonly tool_calls?: readonly CompletionToolCall[];
  readonly tool_call_id?: string;
}

/** The request of a stream. It goes to OpenAI's API if it has tools or calls, which `POST /chat` has not. */
export function toStream(request: PlaygroundRequest) {
  if (usesTools(request)) {
    const { headers, body } = toCompletion(request);
    const json = { ...body, stream: true, stream_options: { include_usage: true } };
    return { path: '/v1/chat/completions', headers, json };
  }
  return {
    path: '/chat',
    headers: { ...headersOf(request), Accept: 'text/event-stream' },
    json: { messages: request.messages },
  };
}

export const usesTools = ({ tool, messages }: PlaygroundRequest): boolean =>
  tool.name !== '' || messages.some(({ tool_calls }) => tool_calls);

function headersOf({ provider, model, fallback, wait }: PlaygroundRequest): Record<string, string> {
  return {
    'X-LLM': provider,
    ...(model.trim() && { 'X-LLM-Model': model.trim() }),
    ...(fallback.trim() && { 'X-LLM-Fallback': fallback.trim() }),
    ...(wait.trim() && { Prefer: `wait=${wait.trim()}` }),
  };
}

/** The request in the terms of OpenAI's API, where the name of the model begins with the provider. */
function toCompletion(request: PlaygroundRequest) {
  const { 'X-LLM': provider, 'X-LLM-Model': model = 'MODEL', ...headers } = headersOf(request);
  const { name, description, parameters } = request.tool;
  const tool = { name, ...(description && { description }), parameters: parseObject(parameters) };
  const tools = name === '' ? {} : { tools: [{ type: 'function', function: tool }] };
  return { headers, body: { model: `${provider}/${model}`, messages: request.messages, ...tools } };
}

/** The object of a JSON text; undefined if it has none. */
export function parseObject(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return value instanceof Object && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A text as one word of a POSIX shell. */
const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The same request for a shell; `url` is the address of chat. Credentials are for the reader to put in. */
export function toCurl(request: PlaygroundRequest, url: string): string {
  const { headers, json, address } = toProgram(request, url);
  const lines = [
    'curl -N -u "$CHAT_USERNAME:$CHAT_PASSWORD"',
    ...Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`),
    `-d ${quote(JSON.stringify(json))}`,
    quote(address),
  ];
  return lines.join(' \\\n  ');
}

/** The request for a program; `url` is the address of chat. */
function toProgram(request: PlaygroundRequest, url: string) {
  const { path, headers, json } = toStream(request);
  const address = usesTools(request) ? new URL(path, url).href : url;
  return { address, json, headers: { ...headers, 'Content-Type': 'application/json' } };
}

/** The same request with `fetch`, for Node; `url` is the address of chat. */
export function toFetch(request: PlaygroundRequest, url: string): string {
  const { address, json, headers } = toProgram(request, url);
  const write = (value: unknown) => JSON.stringify(value, null, 2).replaceAll('\n', '\n  ');
  const head = write({ Authorization: '', ...headers });
  return [
    'const { CHAT_USERNAME, CHAT_PASSWORD } = process.env;',
    `const response = await fetch(${JSON.stringify(address)}, {`,
    "  method: 'POST',",
    `  headers: ${head.replace('""', "'Basic ' + btoa(CHAT_USERNAME + ':' + CHAT_PASSWORD)")},`,
    `  body: JSON.stringify(${write(json)}),`,
    '});',
    'for await (const text of response.body.pipeThrough(new TextDecoderStream())) process.stdout.write(text);',
  ].join('\n');
}

/** The same request with OpenAI's library for Python; `origin` is that of this server. */
export function toOpenAi(request: PlaygroundRequest, origin: string): string {
  const { headers, body } = toCompletion(request);
  const given = { ...body, ...(Object.keys(headers).length > 0 && { extra_headers: headers }) };
  return [
    'import os',
    'from openai import OpenAI',
    '',
    `client = OpenAI(base_url=${toPython(`${origin}/v1`)}, api_key=os.environ["CHAT_TOKEN"])`,
    'stream = client.chat.completions.create(',
    ...Object.entries(given).map(([name, value]) => `    ${name}=${toPython(value)},`),
    '    stream=True,',
    ')',
    'for chunk in stream:',
    '    if chunk.choices:',
    '        delta = chunk.choices[0].delta',
    '        print(delta.content or delta.tool_calls or "", end="")',
  ].join('\n');
}

/** JSON is Python as well, but for three words outside of its texts. */
const toPython = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/"(?:[^"\\]|\\.)*"|true|false|null/g, (word) => pythonWords[word] ?? word);

const pythonWords: Readonly<Record<string, string>> = { true: 'True', false: 'False', null: 'None' };
