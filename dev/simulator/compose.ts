import type { Turn } from '../../shared/conversation.js';
import type { JsonObject } from '../../shared/json/json.js';
import { noTimestamp, type ReplyBehaviour } from './behaviour.js';
import { bindThoughts } from './binding.js';
import type { Call } from './call.js';
import { composeCalls, textBefore } from './compose-calls.js';
import { countTokens, echo, firstHalf, headOf, lastUserText, sizeOf, splitInto, splitText } from './echo.js';
import type { CallParameters, Reply, Thought } from './exchange.js';
import { fill } from './fill.js';
import type { PromptCaches } from './prompt-caches.js';

/** The tokens of thinking in each reply that thinks, if its limit allows for so many. */
const thinkingTokens = 200;

/** Composes the reply to a call, independent of the wire format. */
export function composeReply(asked: AskedCall, behaviour: ReplyBehaviour): Reply {
  const { call, turns, parameters, caches } = asked;
  const { says, calls: calling } = behaviour;
  const { reasoningTokens, left } = budgetOf(parameters, behaviour);
  const calls = left > 0 ? composeCalls(turns, parameters, calling) : [];
  const json = calls.length === 0 && behaviour.withoutJson !== true ? jsonText(parameters) : undefined;
  const given = json === undefined ? pieceByPiece(says) : undefined;
  const whole =
    (calls.length > 0 ? textBefore(calls, calling) : json) ??
    given?.join('') ??
    (says === 'verbatim' ? lastUserText(turns) : echo(call.provider, turns));
  const { text, ...end } = endOf(whole, { ...parameters, left }, behaviour);
  const isCut = calls.length > 0 && calling?.cutAfter !== undefined;
  return {
    callId: call.id,
    model: call.model ?? '',
    text,
    pieces: given ? firstPieces(given, text.length) : call.facts.stream ? splitText(text) : [],
    calls,
    thoughts: think(asked, behaviour, { text, hasCalls: calls.length > 0 }),
    isSigned: calling?.isSigned === true,
    isSlow: calling?.pieces !== undefined,
    ...end,
    ...(isCut && { ending: 'length' }),
    endsAs: behaviour.endsAs,
    inputTokens: countTokens(sizeOf(turns)),
    outputTokens:
      reasoningTokens + countTokens(calls.reduce((sum, made) => sum + made.arguments.length, text.length)),
    reasoningTokens,
    ...caches.count(`${call.provider}/${call.model}`, turns, parameters),
    hasUsage: behaviour.withoutUsage !== true,
    createdAt: call.facts.receivedAt,
    request: call.body as JsonObject,
  };
}

/** The tokens of its thinking, and those left for all else: by all SDKs' types both count toward the limit. */
function budgetOf({ maxOutputTokens: limit = Infinity }: CallParameters, { thinks }: ReplyBehaviour) {
  const reasoningTokens = thinks ? Math.min(Number(limit), thinkingTokens) : 0;
  return { reasoningTokens, left: Number(limit) - reasoningTokens };
}

/** The JSON that the call asks for; undefined if it asks for none. */
function jsonText({ format }: CallParameters): string | undefined {
  if (format === undefined) return undefined;
  return JSON.stringify(format.type === 'json_object' ? {} : fill(format.schema));
}

interface AskedCall {
  readonly call: Call;
  readonly turns: readonly Turn[];
  readonly parameters: CallParameters;
  readonly caches: PromptCaches;
}

/** The thinking of a reply, in words where they are asked for: before its text, and again before calls. */
function think(
  asked: AskedCall,
  { thinks }: ReplyBehaviour,
  { text, hasCalls }: { text: string; hasCalls: boolean },
): Thought[] {
  if (!thinks) return [];
  const isShown = asked.parameters.showsThinking || thinks === 'aloud';
  const shown = ['I think.', 'I think again.'].map((words) => (isShown ? words : ''));
  const amount = text !== '' && hasCalls ? 2 : 1;
  return bindThoughts(shown.slice(0, amount), text, asked);
}

type End = Pick<Reply, 'text' | 'ending' | 'stoppedBy'>;
/** The parameters, and the tokens that are left for a text. */
type Limits = Pick<CallParameters, 'stop' | 'hop'> & { readonly left: number };

function endOf(whole: string, { hop, stop, left }: Limits, behaviour: ReplyBehaviour): End {
  const { hops, says, ending } = behaviour;
  if (hops !== undefined && hop !== undefined) return partOf(whole, { hop, hops, left });
  // Only echoes obey a token limit, unless all of it is used up.
  const limit = says === 'echo' || left <= 0 ? left : Infinity;
  return ending === 'stop' ? cut(whole, stop, limit) : broken(whole, behaviour);
}

/** The text up to the call's stop text, or its limit. */
function cut(whole: string, stop: readonly string[] = [], limit: number): End {
  const stops = stop
    .map((sequence) => ({ sequence, at: whole.indexOf(sequence) }))
    .filter(({ at }) => at !== -1);
  const [first] = stops.sort((a, b) => a.at - b.at);
  const text = whole.slice(0, first?.at);
  const limited = headOf(text, limit);
  return limited === undefined
    ? { text, ending: 'stop', stoppedBy: first?.sequence }
    : { text: limited, ending: 'length' };
}

/** One part of a text. The limit counts over all parts. */
function partOf(whole: string, { hop, hops, left }: { hop: number; hops: number; left: number }): End {
  const parts = splitInto(whole, hops + 1);
  const before = parts.slice(0, hop).join('');
  const limited = headOf(whole, left) ?? whole;
  const text = limited.slice(before.length, before.length + (parts[hop]?.length ?? 0));
  if (text !== (parts[hop] ?? '')) return { text, ending: 'length' };
  return { text, ending: hop < hops ? 'continues' : 'stop' };
}

function broken(whole: string, { ending }: ReplyBehaviour): End {
  const isCut = ending === 'length' || ending === 'blocked-reply';
  return { text: isCut ? firstHalf(whole) : '', ending };
}

function firstPieces(pieces: readonly string[], characters: number): string[] {
  let left = characters;
  return pieces.flatMap((piece) => {
    const kept = piece.slice(0, left);
    left -= kept.length;
    return kept === '' ? [] : [kept];
  });
}

function numberedPieces(amount: number): string[] {
  return Array.from({ length: amount }, (_, index) => (index === 0 ? '1' : ` ${index + 1}`));
}

function pieceByPiece(says: ReplyBehaviour['says']): string[] | undefined {
  if (typeof says === 'number') return numberedPieces(says);
  if (typeof says !== 'object') return undefined;
  return 'timestamps' in says
    ? Array<string>(says.timestamps).fill(`${noTimestamp} `)
    : Array<string>(says.pieces).fill((says.of ?? 'x').repeat(says.length));
}
