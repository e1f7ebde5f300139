import { chatToken, type Deployment } from './deployment.js';

export const bearer = (token = chatToken): string => `Bearer ${token}`;

/** A chat completion, whole or put together from its chunks. */
export interface ReadCompletion {
  status: number;
  text: string;
  finish: string | null | undefined;
  /** Each name that it or its chunks have for the model, once. */
  models: (string | undefined)[];
  /** `X-Ignored-Fields`. */
  ignored: string | null;
}

interface Choice {
  message?: { content?: string };
  delta?: { content?: string };
  finish_reason?: string | null;
}

/** Asks for a chat completion with a token, as OpenAI's clients do. */
export async function completionOf(
  { url }: Pick<Deployment, 'url'>,
  body: object,
  headers: Record<string, string> = {},
): Promise<ReadCompletion> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { Authorization: bearer(), 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }], ...body }),
  });
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
  const text = await response.text();
  const events = isStream ? text.split('\n\n').map((event) => event.replace(/^data: /, '')) : [text];
  const said = events.filter((event) => event.startsWith('{')).map(toCompletion);
  const choices = said.flatMap((each) => each.choices ?? []);
  return {
    status: response.status,
    text: choices.map(({ message, delta }) => (message ?? delta)?.content ?? '').join(''),
    finish: choices.at(-1)?.finish_reason,
    models: [...new Set(said.map(({ model }) => model))],
    ignored: response.headers.get('x-ignored-fields'),
  };
}

const toCompletion = (event: string) => JSON.parse(event) as { model?: string; choices?: Choice[] };
