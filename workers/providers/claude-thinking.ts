import { z } from 'zod';
import { isBlank, type OpaquePart, type Part, partsOf, type Turn } from '../../shared/conversation.js';
import { readJson } from '../../shared/json/json.js';
import { continuation, partedPlaces } from '../../shared/protocol/alternating-turns.js';
import type { ProviderRequest } from './provider.js';

type Reader<Block> = (part: OpaquePart) => Block[];

/** Reads a part's block. Gives none where it cannot be read. */
export const readerOf =
  <Block>(schema: z.ZodType<Block>): Reader<Block> =>
  ({ data }) => {
    const { data: block } = schema.safeParse(readJson(data));
    return block === undefined ? [] : [block];
  };

/**
 * The turns with the thinking of Claude that may go back to it, in its place. A block counts only behind what it was
 * written behind, and none may be missing between others; those at the beginning may go
 * (https://platform.claude.com/docs/en/build-with-claude/preserved-thinking, the same at Bedrock:
 * https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-thinking-block-binding.html).
 *
 * 1. Blocks of others go: no model reads another's.
 * 2. The reply behind the user's last words keeps its own: an agent is still at work on it.
 * 3. A reply before them keeps its own as long as its last turn has one, and all replies behind it do: clients that
 *    keep thinking beside calls alone have lost what stood before its last text.
 * 4. A reply with a block that cannot be read has none, and so have those before it.
 *
 * What stands before a kept block never changes by what comes later, so each request begins as the one before: a turn
 * with thinking behind another one of the assistant's follows the turn of the user that its own request ended with.
 */
export function keepThinking(
  { turns, model }: Pick<ProviderRequest, 'turns' | 'model'>,
  provider: OpaquePart['provider'],
  read: Reader<unknown>,
): Turn[] {
  const isOwn = (part: Part): part is OpaquePart =>
    isOpaque(part) && part.provider === provider && part.model === model;
  const begin = firstKept(turns, (turn) => partsOf(turn).filter(isOwn), read);
  const parted = partedPlaces(turns);
  const kept: Turn[] = [];
  for (const [place, turn] of turns.entries()) {
    const { role, content: given } = turn;
    const hasBlocks = typeof given !== 'string' && given.some(isOpaque);
    const content = hasBlocks
      ? given.filter((part) => !isOpaque(part) || (place >= begin && isOwn(part)))
      : given;
    if (parted.has(place)) kept.push({ role: 'user', content: continuation });
    kept.push({ role, content });
  }
  return kept;
}

const isOpaque = (part: Part): part is OpaquePart => part.type === 'opaque';

/** The place of the first turn whose blocks stay. */
function firstKept(
  turns: readonly Turn[],
  ownOf: (turn: Turn) => OpaquePart[],
  read: Reader<unknown>,
): number {
  let begin = turns.length;
  let end = turns.length;
  for (let place = turns.length - 1; place >= -1; place -= 1) {
    const turn = turns[place];
    if (turn && !isAsking(turn)) continue;
    const reply = turns.slice(place + 1, end).filter(({ role }) => role === 'assistant');
    const last = reply.at(-1);
    const isLost = end < turns.length && last !== undefined && ownOf(last).length === 0;
    if (isLost || !reply.flatMap(ownOf).every((part) => read(part).length > 0)) break;
    begin = place + 1;
    end = place;
  }
  return begin;
}

/** Whether the user says something: agents add notes to results, and go on with the same work. */
function isAsking(turn: Turn): boolean {
  const parts = partsOf(turn);
  const says = parts.some((part) => part.type === 'image' || (part.type === 'text' && !isBlank(part.text)));
  return turn.role === 'user' && says && parts.every(({ type }) => type !== 'tool_result');
}
