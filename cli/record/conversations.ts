import type { Part, Turn } from '../../shared/conversation.js';
import { callsOf, piecesOf, type ReplyPiece } from '../../shared/protocol/parts.js';
import type { ProviderReply, ProviderRequest } from '../../workers/providers/provider.js';

/** A conversation that shows how a provider answers. */
export interface Conversation {
  readonly name: string;
  /** The simulator's model for it. */
  readonly model: string;
  readonly turns: readonly Turn[];
  readonly parameters?: ProviderRequest['parameters'];
}

const city = { type: 'string', description: 'Its name in English.' };
const schema = { type: 'object', properties: { city }, required: ['city'], additionalProperties: false };
const weather = { name: 'weather', description: 'The weather in one city.', parameters: schema };
const capital = 'Which city is the capital of Switzerland?';
const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const image: Part = {
  type: 'image',
  mediaType: 'image/png',
  data: pixel,
  sha256: '0'.repeat(64),
  bytes: Buffer.from(pixel, 'base64').length,
};

const user = (content: Turn['content']): Turn[] => [{ role: 'user', content }];

export const conversations: readonly Conversation[] = [
  { name: 'text', model: 'sim-echo', turns: user(`${capital} Answer with one word.`) },
  {
    name: 'tools',
    model: 'sim-tool-signed',
    turns: user('Where is it warmer now, in Bern or in Rome? Ask for both.'),
    parameters: { tools: [weather] },
  },
  {
    name: 'thinking',
    model: 'sim-think-1',
    turns: user('How many primes below 200 end with a 7?'),
    parameters: { reasoningEffort: 'high' },
  },
  {
    name: 'schema',
    model: 'sim-echo',
    turns: user(capital),
    parameters: { format: { type: 'json_schema', name: 'capital', schema, strict: true } },
  },
  {
    name: 'image',
    model: 'sim-echo',
    turns: user([{ type: 'text', text: 'Which colour is this?' }, image]),
  },
  // A temperature above all, and for those that are sent none, bytes that are no image.
  {
    name: 'refused',
    model: 'sim-echo',
    parameters: { temperature: 9 },
    turns: user([{ ...image, data: 'bm9uZQ==', bytes: 4 }]),
  },
];

/** The turns behind a reply with calls: the reply as it was, and a result for each call. */
export function nextTurns(reply: ProviderReply): Turn[] {
  const toParts = (piece: ReplyPiece): Part[] => {
    if (piece.kind === 'opaque') return [{ ...piece, type: 'opaque' }];
    if (piece.kind !== 'call') return piece.kind === 'text' ? [{ type: 'text', text: piece.text }] : [];
    const { id, name, arguments: json } = piece;
    return [{ type: 'tool_call', id, name, arguments: json }];
  };
  const results = callsOf(reply).map(
    ({ id }): Part => ({ type: 'tool_result', callId: id, content: '{"celsius":12}' }),
  );
  return [
    { role: 'assistant', content: piecesOf(reply).flatMap(toParts) },
    { role: 'user', content: results },
  ];
}
