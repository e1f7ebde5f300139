import { type PlaygroundRequest, toCompletion, toStream, usesTools } from './request.ts';

/** A text as one word of a POSIX shell. */
const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The same request for a shell; `url` is the address of chat. Credentials are for the reader to put in. */
export function toCurl(request: PlaygroundRequest, url: string): string {
  const { path, headers, json } = toStream(request);
  const lines = [
    'curl -N -u "$CHAT_USERNAME:$CHAT_PASSWORD"',
    ...Object.entries({ ...headers, 'Content-Type': 'application/json' }).map(
      ([name, value]) => `-H ${quote(`${name}: ${value}`)}`,
    ),
    `-d ${quote(JSON.stringify(json))}`,
    quote(usesTools(request) ? new URL(path, url).href : url),
  ];
  return lines.join(' \\\n  ');
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
