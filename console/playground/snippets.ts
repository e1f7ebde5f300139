import { headersOf, type PlaygroundRequest } from './chat.ts';

/** A text as one word of a POSIX shell. */
const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The same request for a shell; `url` is the address of chat. Credentials are for the reader to put in. */
export function toCurl(request: PlaygroundRequest, url: string): string {
  const headers = { ...headersOf(request), Accept: 'text/event-stream', 'Content-Type': 'application/json' };
  const lines = [
    'curl -N -u "$CHAT_USERNAME:$CHAT_PASSWORD"',
    ...Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`),
    `-d ${quote(JSON.stringify({ messages: request.messages }))}`,
    quote(url),
  ];
  return lines.join(' \\\n  ');
}

/** The same request with OpenAI's library for Python; `origin` is that of this server. */
export function toOpenAi(request: PlaygroundRequest, origin: string): string {
  const { provider, model, messages } = request;
  const { 'X-LLM': _inTheModel, ...headers } = headersOf(request);
  delete headers['X-LLM-Model'];
  const extra = Object.keys(headers).length > 0 ? [`    extra_headers=${toPython(headers)},`] : [];
  return [
    'import os',
    'from openai import OpenAI',
    '',
    `client = OpenAI(base_url=${toPython(`${origin}/v1`)}, api_key=os.environ["CHAT_TOKEN"])`,
    'stream = client.chat.completions.create(',
    `    model=${toPython(`${provider}/${model.trim() || 'MODEL'}`)},`,
    `    messages=${toPython(messages)},`,
    ...extra,
    '    stream=True,',
    ')',
    'for chunk in stream:',
    '    if chunk.choices:',
    '        print(chunk.choices[0].delta.content or "", end="")',
  ].join('\n');
}

/** Of texts, lists and objects JSON is Python as well. */
const toPython = (value: unknown): string => JSON.stringify(value);
