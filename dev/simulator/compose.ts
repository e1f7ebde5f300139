import { partsOf, type Turn } from '../../shared/conversation.js';
import { type JsonObject, readJson } from '../../shared/json/json.js';
import type { Exchange } from './calls.js';
import {
  countTokens,
  echo,
  firstCharacters,
  headOf,
  lastUserText,
  sizeOf,
  splitInto,
  splitText,
} from './echo.js';
import type { Behaviour } from './model-names.js';
import { fill } from './schemas.js';
import { bindThoughts } from './seals.js';
import type {
  CacheBlock,
  CallParameters,
  Ending,
  OfferedTool,
  Reply,
  ReplyBlock,
  ReplyCall,
  Step,
  Thought,
} from './wire-format.js';

/** The tokens of thinking in each reply that thinks, if its limit allows for so many. */
const thinkingTokens = 200;
/** Replaced by the time when it is sent, in milliseconds since the epoch. */
export const noTimestamp = '0000000000000.000';

/** Composes the reply to a call, independent of the wire format. */
export function composeReply(asked: Exchange): Reply {
  const { call, turns, parameters, caches, behaviour, steps } = asked;
  // By all SDKs' types thinking and all else count toward the limit.
  const limit = Number(parameters.maxOutputTokens ?? Infinity);
  const content = steps ? perform(asked, steps) : compose(asked, limit);
  const reasoningTokens = content.thoughts.length > 0 ? Math.min(limit, thinkingTokens) : 0;
  const made = content.calls.reduce((sum, each) => sum + each.arguments.length, content.text.length);
  return {
    callId: call.id,
    model: call.model ?? '',
    ...content,
    isSigned: behaviour.isSigned === true,
    isSlow: behaviour.pieces !== undefined,
    inputTokens: countTokens(sizeOf(turns)),
    outputTokens: reasoningTokens + countTokens(made),
    reasoningTokens,
    ...caches.count(`${call.provider}/${call.model}`, readBlocks(asked), parameters),
    hasUsage: behaviour.withoutUsage !== true,
    createdAt: call.facts.receivedAt,
    request: call.body as JsonObject,
  };
}

type Fields =
  | 'text'
  | 'pieces'
  | 'calls'
  | 'thoughts'
  | 'blocks'
  | 'ending'
  | 'stoppedBy'
  | 'endsAs'
  | 'refusal';
/** What a model says, thinks and calls, and how it ends. */
type Content = Pick<Reply, Fields>;

/** The content of a reply that follows from the name of a model. */
function compose(asked: Exchange, limit: number): Content {
  const { call, turns, parameters, behaviour } = asked;
  const left = limit - (behaviour.thinks ? Math.min(limit, thinkingTokens) : 0);
  const calls = left > 0 ? composeCalls(turns, parameters, behaviour) : [];
  const fixed = calls.length > 0 ? textBefore(calls, behaviour) : jsonText(parameters, behaviour);
  const given = fixed === undefined ? pieceByPiece(behaviour) : undefined;
  const said = behaviour.says === 'verbatim' ? lastUserText(turns) : echo(call.provider, turns);
  const { text, ...end } = endOf(fixed ?? given?.join('') ?? said, { ...parameters, left }, behaviour);
  const amount = text !== '' && calls.length > 0 ? 2 : 1;
  return {
    text,
    pieces: given ? firstPieces(given, text.length) : call.facts.stream ? splitText(text) : [],
    calls,
    thoughts: think(asked, { text, amount }),
    ...end,
    ...(calls.length > 0 && behaviour.cutAfter !== undefined && { ending: 'length' }),
    endsAs: behaviour.endsAs,
  };
}

/** The content of a reply that has these steps. */
function perform(asked: Exchange, steps: readonly Step[]): Content {
  const { tools = [], showsThinking } = asked.parameters;
  const text = steps.map(({ say = '' }) => say).join('');
  const thinking = steps.filter(({ think }) => think !== undefined);
  const words = thinking.map(({ think = '' }) => (showsThinking ? think : ''));
  const thoughts = bindThoughts(words, text, asked);
  const blocks = steps.flatMap((step): ReplyBlock[] => {
    const thought = thoughts[thinking.indexOf(step)];
    if (thought !== undefined) return [{ thought }];
    if (step.say !== undefined) return [{ text: step.say }];
    if (step.search !== undefined) return [{ search: step.search }];
    if (step.raw !== undefined) return [{ raw: step.raw, deltas: step.deltas }];
    return step.call === undefined ? [] : [{ call: writeCall(nameOf(step.call, tools), step.with) }];
  });
  const refusal = steps.find(({ refuse }) => refuse !== undefined)?.refuse;
  return {
    text,
    pieces: asked.call.facts.stream ? steps.flatMap(({ say = '' }) => splitText(say)) : [],
    calls: blocks.flatMap((block) => ('call' in block ? [block.call] : [])),
    thoughts,
    blocks,
    ending: refusal === undefined ? 'stop' : 'refused',
    endsAs: steps.find(({ end }) => end !== undefined)?.end,
    refusal,
  };
}

const scriptedPieces = 8;

function writeCall(name: string, input: JsonObject = {}): ReplyCall {
  const whole = JSON.stringify(input);
  return { name, arguments: whole, pieces: whole === '{}' ? [] : splitInto(whole, scriptedPieces) };
}

/** The name of an offered tool, also of one that a gateway has shortened: a beginning, `_`, and 12 of a digest. */
function nameOf(name: string, tools: readonly OfferedTool[]): string {
  const start = `${name.replace(/[^\w-]/g, '_').slice(0, 51)}_`;
  const shortened = tools.find(
    (tool) => tool.name.startsWith(start) && tool.name.length === start.length + 12,
  );
  return tools.some((tool) => tool.name === name) ? name : (shortened?.name ?? name);
}

/** The blocks of a call, of which the last is marked where only the whole of it can be. */
function readBlocks({ call, format, turns, parameters }: Exchange): readonly CacheBlock[] {
  if (!parameters.isMarked) return [];
  if (format.cacheBlocks) return format.cacheBlocks(call.body as JsonObject);
  const blocks = turns.flatMap((turn) =>
    partsOf(turn).map((part): CacheBlock => ({ role: turn.role, part })),
  );
  return blocks.map((block, place) => (place === blocks.length - 1 ? { ...block, ttl: '5m' } : block));
}

/** The calls of a reply: none without tools, or when the conversation ends with results, so that agents' loops end. */
function composeCalls(turns: readonly Turn[], asked: CallParameters, behaviour: Behaviour): ReplyCall[] {
  const { tools: all = [], deferredTools: deferred = [], toolChoice: choice, parallelToolCalls } = asked;
  const tools = all.filter(({ name }) => !deferred.includes(name));
  const last = turns.at(-1);
  const isAnswered = last !== undefined && partsOf(last).at(-1)?.type === 'tool_result';
  if (choice === 'none' || isAnswered) return [];
  const chosen = typeof choice === 'object' ? tools.filter(({ name }) => name === choice.name) : tools;
  const isSingle = behaviour.calls !== 'each' || parallelToolCalls === false;
  const made = chosen.slice(0, isSingle ? 1 : undefined).map((tool) => callOf(tool, behaviour));
  const times = behaviour.calls === 'each' ? 1 : behaviour.calls;
  return made.flatMap((call) => Array<ReplyCall>(times).fill(call));
}

function callOf({ name, parameters }: OfferedTool, behaviour: Behaviour): ReplyCall {
  const { brokenCalls: broken, cutAfter, pieces: amount = 8 } = behaviour;
  const filled = JSON.stringify(fill({ type: 'object', ...parameters }, Math.max(behaviour.pieces ?? 0, 4)));
  const whole = broken === 'unreadable' ? '{"unfinished' : filled;
  const pieces = splitInto(whole, Math.max(amount, (cutAfter ?? 0) + 1));
  const kept = cutAfter === undefined ? pieces : pieces.slice(0, Math.min(cutAfter, pieces.length - 1));
  return {
    name: broken === 'nameless' ? undefined : broken === 'unoffered' ? 'not_offered' : name,
    arguments: kept.join(''),
    pieces: whole === '{}' && cutAfter === undefined ? [] : kept,
  };
}

/** The arguments as an object; what was cut is an empty one, and what is broken stays a text. */
export const inputOf = ({ arguments: text }: ReplyCall, ending: Ending): unknown =>
  readJson(text) ?? (ending === 'length' ? {} : text);

/** The text before the calls, where a model says something: one that makes many calls, or is cut. */
const textBefore = (calls: readonly ReplyCall[], behaviour: Behaviour): string =>
  behaviour.calls === 'each' || behaviour.cutAfter !== undefined
    ? `I call ${calls.map(({ name }) => name).join(', ')}.`
    : '';

/** The JSON that the call asks for; undefined if it asks for none, or does not get it. */
export function jsonText({ format }: CallParameters, { withoutJson }: Behaviour): string | undefined {
  if (format === undefined || withoutJson) return undefined;
  return JSON.stringify(format.type === 'json_object' ? {} : fill(format.schema));
}

function pieceByPiece({ says, amount, length, character }: Behaviour): string[] | undefined {
  switch (says) {
    case 'numbers':
      return Array.from({ length: amount }, (_, index) => (index === 0 ? '1' : ` ${index + 1}`));
    case 'characters':
      return Array<string>(amount).fill(character.repeat(length));
    case 'times':
      return Array<string>(amount).fill(`${noTimestamp} `);
    default:
      return undefined;
  }
}

/** The thinking of a reply, in words where they are asked for: before its text, and again before calls. */
function think(asked: Exchange, reply: { text: string; amount: number }): Thought[] {
  const { thinks } = asked.behaviour;
  if (!thinks) return [];
  const isShown = asked.parameters.showsThinking || thinks === 'aloud';
  const shown = ['I think.', 'I think again.'].map((words) => (isShown ? words : ''));
  return bindThoughts(shown.slice(0, reply.amount), reply.text, asked);
}

type End = Pick<Reply, 'text' | 'ending' | 'stoppedBy'>;
/** The parameters, and the tokens that are left for a text. */
type Limits = Pick<CallParameters, 'stop' | 'hop'> & { readonly left: number };

function endOf(whole: string, { hop, stop, left }: Limits, { hops, says, ending }: Behaviour): End {
  if (hops !== undefined && hop !== undefined) return partOf(whole, { hop, hops, left });
  if (ending !== 'stop') {
    const isCut = ending === 'length' || ending === 'blocked-reply';
    return { text: isCut ? firstCharacters(whole, Math.ceil(whole.length / 2)) : '', ending };
  }
  // Only echoes obey a token limit, unless all of it is used up.
  return cut(whole, stop, says === 'echo' || left <= 0 ? left : Infinity);
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

function firstPieces(pieces: readonly string[], characters: number): string[] {
  let left = characters;
  return pieces.flatMap((piece) => {
    const kept = piece.slice(0, left);
    left -= kept.length;
    return kept === '' ? [] : [kept];
  });
}
