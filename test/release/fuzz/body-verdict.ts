import type { PostInput } from '../../../shared/contracts/contract.js';
import { isBlank } from '../../../shared/conversation.js';
import type { DescribedOperation } from '../../support/openapi-document.js';
import type { SentRequest } from './request.js';

/** The document's demand on a part of a request; `either` where no schema can say it. */
export type Verdict = 'taken' | 'refused' | 'too large' | 'either';

/** Of every operation: `world.ts` sets it where images may come along. */
const maxBytes = 1_048_576;
const deepest = 32;
const maxMessages = 1000;

/** The verdict on a JSON body. */
export function verdictOnBody(operation: DescribedOperation, sent: SentRequest): Verdict {
  const bytes = Buffer.from(sent.body?.text ?? '', sent.body?.bytes);
  if (bytes.length > maxBytes) return 'too large';
  const value = parse(bytes);
  if (value === unreadable) return 'refused';
  const mediaType = (sent.contentType?.[0]?.[1] ?? '').split(';')[0]?.trim() ?? '';
  if (!operation.acceptsBody(mediaType, value)) return 'refused';
  return isBeyondSchema(value, sent) ? 'either' : 'taken';
}

const unreadable = Symbol('unreadable');

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return unreadable;
  }
}

/** Rules beyond the schema: characters, blankness, depth, an empty conversation, strictness. */
function isBeyondSchema(value: unknown, sent: SentRequest): boolean {
  const { texts, depth } = inspect(value);
  const isStrict = sent.own.some(([name, text]) => name === 'Prefer' && /strict/i.test(text));
  // Which provider can do what, and whose fields exclude each other.
  if (sent.target.includes('/chat/completions')) return true;
  // Which version the change is based on, and whether something is named twice.
  if (sent.target.includes('/admin/')) return true;
  if (isStrict || depth > deepest || texts.some((text) => !text.isWellFormed())) return true;
  return sent.target.includes('/chat')
    ? isUnspeakable(value as { messages: { content?: string }[] })
    : texts.some((text) => isBlank(text) || text.includes('\0')) || isUnlikely(value as Partial<PostInput>);
}

/** Has a line with characters that cannot be seen, or a slug that is not ASCII: of others no pattern says the rule. */
function isUnlikely({ title, author, tags, slug }: Partial<PostInput>): boolean {
  const lines = [title, author, ...(tags ?? [])].map((line) => line?.trim() ?? '');
  return (
    !/^[a-z0-9-]*$/.test(slug ?? '') ||
    lines.some((line) => /[\p{Cc}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u.test(line))
  );
}

const isUnspeakable = ({ messages }: { messages: { content?: string }[] }): boolean =>
  messages.length > maxMessages || messages.every(({ content = '' }) => isBlank(content));

/** Every text of the value, names behind a letter so that none is blank, and how deep it nests. */
function inspect(root: unknown): { texts: string[]; depth: number } {
  const texts: string[] = [];
  let most = 0;
  const open = [{ value: root, depth: 1 }];
  for (let next = open.pop(); next; next = open.pop()) {
    const { value, depth } = next;
    if (typeof value === 'string') texts.push(value);
    if (typeof value !== 'object' || value === null) continue;
    most = Math.max(most, depth);
    for (const [name, child] of Object.entries(value)) {
      texts.push(`x${name}`);
      open.push({ value: child, depth: depth + 1 });
    }
  }
  return { texts, depth: most };
}
