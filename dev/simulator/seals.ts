import { createHash } from 'node:crypto';
import { partsOf, type Turn } from '../../shared/conversation.js';
import { isObject, type JsonObject, readJson } from '../../shared/json/json.js';
import type { Exchange } from './calls.js';
import type { Breach, CallParameters, MadeCall, Place, Thought } from './wire-format.js';

/**
 * Thinking counts only behind the system text, the tools and the messages that it was made behind. Of the blocks that
 * are kept none may be missing between others; those before the first one may be.
 * https://platform.claude.com/docs/en/build-with-claude/preserved-thinking
 */
export function findBreaches({ call, turns, parameters }: Exchange): { place: Place; breach: Breach }[] {
  const maker = digestOf(call.model ?? '');
  let previous: string | undefined;
  return readConversation(turns, parameters).blocks.flatMap(({ place, text, before, ...bond }) => {
    const isWhole = bond.own === digestOf(maker, before, bond.previous, text);
    const isNext = previous === undefined || previous === bond.previous;
    if (isWhole && isNext) {
      previous = bond.own;
      return [];
    }
    const isOwn = bond.maker === '' || bond.maker === maker;
    return [{ place, breach: isWhole ? 'gap' : isOwn ? 'elsewhere' : 'foreign' }];
  });
}

/** The thinking of a reply: before its text, and before its calls where it has both. */
export function bindThoughts(
  texts: string[],
  replyText: string,
  { call, turns, parameters }: Exchange,
): Thought[] {
  const maker = digestOf(call.model ?? '');
  const { blocks, hash } = readConversation(turns, parameters);
  let previous = blocks.findLast((block) => block.maker === maker)?.own ?? '';
  return texts.map((text, index) => {
    if (index > 0) hash.update(JSON.stringify(['assistant', { type: 'text', text: replyText }]));
    const own = digestOf(maker, hash.copy().digest('base64url'), previous, text);
    const signature = Buffer.from(JSON.stringify([maker, previous, own])).toString('base64');
    previous = own;
    return { text, signature };
  });
}

const digestOf = (...facts: string[]): string =>
  createHash('sha256').update(JSON.stringify(facts)).digest('base64url');

/** The blocks of thinking, each with the digest of all before it but thinking, and the digest that goes on behind. */
function readConversation(turns: readonly Turn[], { tools = [] }: CallParameters) {
  const hash = createHash('sha256').update(JSON.stringify(tools));
  const first = turns.findIndex(({ role }) => role !== 'system');
  const blocks: ({ place: Place; before: string } & ReturnType<typeof readBlock>)[] = [];
  for (const [turn, { role, content }] of turns.entries()) {
    for (const [part, each] of partsOf({ content }).entries()) {
      const at = { place: { turn: turn - first, part }, before: hash.copy().digest('base64url') };
      if (each.type !== 'opaque') hash.update(JSON.stringify([role, each]));
      // An opaque part holds the blocks that nothing interrupts.
      else
        for (const block of [readJson(each.data)].flat().filter(isObject))
          blocks.push({ ...at, ...readBlock(block) });
    }
  }
  return { blocks, hash };
}

/** A block: its text, and of its signature the model, and the digests of the block before it and its own. */
function readBlock(block: JsonObject) {
  const { thinking, text, signature, data } = Object(block.reasoningText ?? block);
  const sealed = Buffer.from(String(signature ?? data ?? block.redactedContent), 'base64').toString();
  const [maker = '', previous = '', own = ''] = [readJson(sealed) ?? []].flat().map(String);
  return { text: String(thinking ?? text ?? ''), maker, previous, own };
}

/** The signature of a call, in base64: the same for the same call. */
export const sign = (call: MadeCall, what = ''): string =>
  Buffer.from(
    `simulated ${createHash('sha256').update(`${call.name}${call.arguments}${what}`).digest('hex')}`,
  ).toString('base64');

/** The signature of a text. */
export const signText = (text: string): string => sign({ name: undefined, arguments: text });

/** The documented value for calls whose signature is not known. */
const skipped = 'skip_thought_signature_validator';

/** Whether a turn has a signature that is not as the model has made it for the call or the text behind it. */
export const hasForeignSignature = (turn: Turn, signatureOf: (call: MadeCall) => string): boolean =>
  partsOf(turn).some((part, index, parts) => {
    const next = parts[index + 1];
    if (part.type !== 'opaque' || part.data === skipped) return false;
    if (next?.type === 'text') return part.data !== signText(next.text);
    return next?.type !== 'tool_call' || part.data !== signatureOf(next);
  });
