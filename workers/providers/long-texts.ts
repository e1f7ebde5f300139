import { randomUUID } from 'node:crypto';
import { isBlank, type Part, type Turn } from '../../shared/conversation.js';
import type { Filling } from '../../shared/json/json-worker.js';
import type { Provider } from './provider.js';

/**
 * SDKs write a body in one go, which takes up to two seconds for 32 MiB. So a long request goes through adapter and SDK
 * with a short word in place of each long text, and its body gets the texts at the end, in a thread (`JsonThread`).
 */
export interface StandIns extends Pick<Filling, 'mark' | 'texts'> {
  readonly turns: readonly Turn[];
}

/** The shortest text that is replaced: a word for a shorter one would cost more than the text. */
const minLength = 1024;

/** Adapters ask whether a text is blank, which its word is not. */
const isLong = (text: string, least: number): boolean => text.length >= least && !isBlank(text);

/** Puts words in the place of long texts: of all that adapters hand on as they are. */
export function standIn(
  turns: readonly Turn[],
  { parsesResultsTo = 0 }: Pick<Provider, 'parsesResultsTo'>,
): StandIns {
  const mark = `text-${randomUUID()}-`;
  const texts: string[] = [];
  const short = (text: string, least = minLength) =>
    isLong(text, least) ? `${mark}${texts.push(text) - 1}.` : text;
  const ofPart = (part: Part): Part => {
    if (part.type === 'text') return { ...part, text: short(part.text) };
    if (part.type !== 'tool_result') return part;
    return { ...part, content: short(part.content, Math.max(minLength, parsesResultsTo + 1)) };
  };
  const shortened = turns.map(({ role, content }) => ({
    role,
    content: typeof content === 'string' ? short(content) : content.map(ofPart),
  }));
  return { turns: shortened, mark, texts };
}
