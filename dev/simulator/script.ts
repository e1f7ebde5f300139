import { type Turn, textOf } from '../../shared/conversation.js';
import { isObject, readJson } from '../../shared/json/json.js';
import type { Exchange } from './calls.js';
import { composeReply, jsonText } from './compose.js';
import type { Behaviour, Delivery } from './model-names.js';
import { PromptCaches } from './prompt-caches.js';
import type { Refusal, Step } from './wire-format.js';

/** The fields of a step, with their types and what they do. */
const fields = new Map([
  ['call', ['string', 'calls this tool, with the arguments of `with`']],
  ['with', ['object', 'the arguments of a call']],
  ['think', ['string', 'thinks; in words where they are asked for']],
  ['say', ['string', 'says this']],
  ['refuse', ['string', 'refuses, at anthropic in this category']],
  ['end', ['string', "ends with this word of its provider's, not at openai"]],
  ['search', ['string', 'at anthropic searches by itself: a call, and its result']],
  ['raw', ['object', 'at anthropic has this block, with the `deltas` of its stream']],
  ['deltas', ['object', 'the deltas of a block']],
  ['wait', ['number', 'waits so many milliseconds, before a turn or between two steps of it']],
  [
    'fail',
    [
      'number string',
      "fails with this status, behind other steps within the stream; hang, reset, truncate or malformed break it; any other word is a class of Claude's refusals, such as media_budget",
    ],
  ],
  ['times', ['number', 'so many calls fail, and the next go on with the steps behind']],
]);

/** Each field of a step with what it does. */
export const stepList = [...fields].map(([step, [, does]]) => ({ step, does }));

/** The ways in which a connection breaks. */
const broken: readonly Delivery[] = ['hang', 'reset', 'truncate', 'malformed'];

const beginning = 'sim: [';
/** The reply to what has no script, such as the request for a title, and behind the last step. */
const close = ({ parameters, behaviour }: Exchange): Step => ({
  say: jsonText(parameters, behaviour) ?? 'Done.',
});

/**
 * Reads the steps of the next turn from the newest text of the user that has a script, such as
 * `sim: [{"call": "Bash", "with": {"command": "ls"}}, [{"think": "Fine."}, {"say": "Two files."}]]`: a step a turn, or
 * an inner list of them. The turns of the assistant behind that text have been played. Gives the refusal of a script
 * that cannot be read.
 */
export function direct(exchange: Exchange): Exchange | Refusal {
  const { turns, parameters, format, call, callNumbers } = exchange;
  const at = turns.findLastIndex((turn) => turn.role === 'user' && textOf(turn).includes(beginning));
  if (at === -1) return play(exchange, [close(exchange)]);
  const script = readScript(textOf(turns[at] ?? { content: '' }));
  if (script === undefined) return format.errors.wrong(['sim'], 'a list of steps that can be read');
  // The request for a title shows the conversation without its tools.
  const isAside = parameters.tools === undefined && script.flat().some((step) => step.call !== undefined);
  const played = countTurns(turns.slice(at));
  const steps = isAside ? [] : (script[played] ?? []);
  const isSpent = ({ times = Infinity }: Step, place: number): boolean => {
    const key = `${call.provider}/${call.model}/${played}/${place}/${JSON.stringify(script)}`;
    const number = callNumbers.get(key) ?? 0;
    if (number < times) callNumbers.set(key, number + 1);
    return number >= times;
  };
  const left = steps.filter((step, place) => step.fail === undefined || !isSpent(step, place));
  return play(exchange, left.length === 0 ? [close(exchange)] : left);
}

const countTurns = (turns: readonly Turn[]): number =>
  turns.filter(({ role }) => role === 'assistant').length;

/** The turns of a script; undefined if it has other fields, or no end. */
function readScript(text: string): Step[][] | undefined {
  const start = text.indexOf(beginning) + beginning.length - 1;
  for (let end = text.indexOf(']', start); end !== -1; end = text.indexOf(']', end + 1)) {
    const script = readJson(text.slice(start, end + 1));
    if (!Array.isArray(script)) continue;
    const turns: unknown[][] = script.map((turn) => [turn].flat());
    return turns.every((steps): steps is Step[] => steps.every(isStep)) ? turns : undefined;
  }
  return undefined;
}

const isStep = (step: unknown): step is Step =>
  isObject(step) &&
  Object.entries(step).every(([name, value]) =>
    name === 'deltas'
      ? Array.isArray(value)
      : value !== null && fields.get(name)?.[0]?.includes(typeof value),
  );

/** The exchange with the steps of its reply, and the waits and failures among them. */
function play(exchange: Exchange, all: readonly Step[]): Exchange {
  const waits = all.findIndex(({ wait }) => wait === undefined);
  const [before, steps] = waits === -1 ? [all, [close(exchange)]] : [all.slice(0, waits), all.slice(waits)];
  const delayMs = before.reduce((sum, { wait = 0 }) => sum + wait, exchange.behaviour.delayMs);
  const behaviour = { ...exchange.behaviour, delayMs };
  const stop = steps.findIndex(({ wait, fail }) => (wait ?? fail) !== undefined);
  const { wait: lullMs, fail } = steps[stop] ?? {};
  if (stop === 0) return { ...exchange, behaviour: { ...behaviour, ...failureOf(fail) }, steps };
  if (stop === -1) return { ...exchange, behaviour, steps };
  // A stream that breaks off has the end of the block before: there is one more behind it, which is not sent.
  const shown = fail === undefined ? steps : [...steps, close(exchange)];
  const delivery = lullMs === undefined ? (deliveryOf(fail) ?? 'error') : 'lull';
  const afterDeltas = countDeltas(exchange, shown, stop);
  const how = { ...behaviour, delivery, lullMs: lullMs ?? 0, afterDeltas };
  return { ...exchange, behaviour: how, steps: shown };
}

const deliveryOf = (fail: Step['fail']): Delivery | undefined => broken.find((way) => way === fail);

function failureOf(fail: Step['fail']): Partial<Behaviour> {
  if (typeof fail === 'number') return { fails: 'status', status: fail };
  if (fail === 'hang' || fail === 'reset') return { fails: fail };
  const delivery = deliveryOf(fail);
  return delivery === undefined ? { fails: 'rejected', rejection: String(fail) } : { delivery };
}

/** How many deltas of a stream belong to its first steps, with the one that ends their last block. */
function countDeltas(exchange: Exchange, steps: readonly Step[], amount: number): number {
  const write = (part: readonly Step[]) =>
    exchange.format.stream(composeReply({ ...exchange, steps: part, caches: new PromptCaches() }));
  const [all, first] = [write(steps), write(steps.slice(0, amount))];
  const { length } = first.deltas;
  return String(all.deltas[length]) === String(first.closing[0]) ? length + 1 : length;
}
