import { partsOf, type Turn } from '../../shared/conversation.js';
import { readJson } from '../../shared/json/json.js';
import type { CallsBehaviour } from './behaviour.js';
import { splitInto } from './echo.js';
import type { CallParameters, Ending, OfferedTool, ReplyCall } from './exchange.js';
import { fill } from './fill.js';

const usualPieces = 8;

/** The calls of a reply: none without tools, or when the conversation ends with results, so that agents' loops end. */
export function composeCalls(
  turns: readonly Turn[],
  { tools = [], toolChoice, parallelToolCalls }: CallParameters,
  behaviour: CallsBehaviour | undefined,
): ReplyCall[] {
  const last = turns.at(-1);
  const isAnswered = last !== undefined && partsOf(last).at(-1)?.type === 'tool_result';
  if (behaviour === undefined || toolChoice === 'none' || isAnswered) return [];
  const chosen =
    typeof toolChoice === 'object' ? tools.filter(({ name }) => name === toolChoice.name) : tools;
  const { amount } = behaviour;
  const isSingle = amount !== 'each' || parallelToolCalls === false;
  const made = chosen.slice(0, isSingle ? 1 : undefined).map((tool) => callOf(tool, behaviour));
  return amount === 'each' ? made : made.flatMap((call) => Array<ReplyCall>(amount).fill(call));
}

/** The text before the calls, where a model says something: one that makes many calls, or is cut. */
export const textBefore = (calls: readonly ReplyCall[], behaviour: CallsBehaviour | undefined): string =>
  behaviour?.amount === 'each' || behaviour?.cutAfter !== undefined
    ? `I call ${calls.map(({ name }) => name).join(', ')}.`
    : '';

function callOf({ name, parameters }: OfferedTool, behaviour: CallsBehaviour): ReplyCall {
  const { broken, cutAfter = Infinity, pieces: amount = usualPieces } = behaviour;
  const filled = JSON.stringify(fill({ type: 'object', ...parameters }, Math.max(behaviour.pieces ?? 0, 4)));
  const whole = broken === 'garbage' ? '{"unfinished' : filled;
  const isCut = cutAfter !== Infinity;
  const pieces = splitInto(whole, isCut ? Math.max(amount, cutAfter + 1) : Math.max(amount, 1));
  const kept = isCut ? pieces.slice(0, Math.min(cutAfter, pieces.length - 1)) : pieces;
  return {
    name: broken === 'nameless' ? undefined : broken === 'unknown' ? 'not_offered' : name,
    arguments: kept.join(''),
    pieces: whole === '{}' && !isCut ? [] : kept,
  };
}

/** The arguments as an object; what was cut is an empty one, and what is broken stays a text. */
export const inputOf = ({ arguments: text }: ReplyCall, ending: Ending): unknown =>
  readJson(text) ?? (ending === 'length' ? {} : text);
