import { type Part, partsOf, type StoredImage, type Turn } from '../../shared/conversation.js';
import type { JsonObject } from '../../shared/json/json.js';
import type { CallParameters, OfferedTool } from './exchange.js';
import { imageTypeOf } from './image.js';
import { firstRefusal, type Refusal } from './refusal.js';

/** Where something is in a conversation without its system texts: the turn, and the part of it. */
export interface Place {
  readonly turn: number;
  readonly part: number;
}

/** The words of an error, or the whole error where it has more than words. */
type Fault = string | Refusal;

/** A provider's rules for tools, formats and parts, in its words. What it does not refuse is absent. */
export interface PartRules {
  /** The error with such words. */
  refuse(words: string): Refusal;
  readonly toolName: RegExp;
  toolNamed(name: string, index: number): Fault;
  sameName?(name: string): Fault;
  withoutDescription?(index: number): Fault;
  /** The root of a tool's schema has another type, or none. */
  noObject(tool: OfferedTool, index: number): Fault;
  /** A schema; absent for the index of a tool is that of a format. */
  schema(
    schema: JsonObject,
    of: { strict?: boolean | undefined; name?: string | undefined; index?: number },
  ): Fault | undefined;
  choiceWithoutTools?(): Fault;
  notOffered?(name: string): Fault;
  callsWithoutTools?(): Fault;
  readonly callId?: RegExp;
  callNamed?(id: string, place: Place): Fault;
  callWithoutResult(ids: readonly string[], turn: number): Fault;
  resultWithoutCall(id: string, place: Place): Fault;
  textBehindResult?(): Fault;
  image(image: StoredImage & { data: string }, type: string | undefined, place: Place): Fault | undefined;
  /** The first call of a turn, in the work that is not finished, has to be signed. */
  unsigned?(name: string, turn: number): Fault;
}

/** The provider's error for the first of its rules that a call breaks whose body has the right shape. */
export function checkParts(
  rules: PartRules,
  turns: readonly Turn[],
  asked: CallParameters,
): Refusal | undefined {
  const spoken = turns.filter(({ role }) => role !== 'system').map(partsOf);
  const hasCalls = spoken.flat().some(({ type }) => type === 'tool_call' || type === 'tool_result');
  const fault =
    checkTools(rules, asked) ??
    (hasCalls && asked.tools === undefined ? rules.callsWithoutTools?.() : undefined) ??
    firstRefusal(spoken, (parts, turn) =>
      firstRefusal(parts, (part, place) => checkPart(rules, part, { turn, part: place })),
    ) ??
    (hasCalls ? checkOrder(rules, spoken) : undefined);
  return typeof fault === 'string' ? rules.refuse(fault) : fault;
}

function checkTools(rules: PartRules, { tools = [], toolChoice, format }: CallParameters): Fault | undefined {
  const names = tools.map(({ name }) => name);
  const fault = firstRefusal(tools, (tool, index) => {
    const { name, description, parameters, strict } = tool;
    if (!rules.toolName.test(name)) return rules.toolNamed(name, index);
    if (names.indexOf(name) < index && rules.sameName) return rules.sameName(name);
    if (description === '' && rules.withoutDescription) return rules.withoutDescription(index);
    if (parameters === undefined) return undefined;
    if (parameters.type !== 'object') return rules.noObject(tool, index);
    return rules.schema(parameters, { strict, name, index });
  });
  if (fault !== undefined) return fault;
  if (toolChoice !== undefined && tools.length === 0) return rules.choiceWithoutTools?.();
  if (typeof toolChoice === 'object' && !names.includes(toolChoice.name))
    return rules.notOffered?.(toolChoice.name);
  return format?.schema && rules.schema(format.schema, format);
}

function checkPart(rules: PartRules, part: Part, place: Place): Fault | undefined {
  if (part.type === 'image' && 'data' in part) {
    const { data = '' } = part;
    return rules.image({ ...part, data }, imageTypeOf(data), place);
  }
  const id = part.type === 'tool_call' ? part.id : part.type === 'tool_result' ? part.callId : undefined;
  return id === undefined || rules.callId?.test(id) !== false ? undefined : rules.callNamed?.(id, place);
}

const callsIn = (parts: readonly Part[] = []) =>
  parts.flatMap((part) => (part.type === 'tool_call' ? [part.id] : []));

const idsOf = (results: readonly Part[]) =>
  results.flatMap((part) => (part.type === 'tool_result' ? [part.callId] : []));

/** The results before all else in a turn. */
function resultsIn(parts: readonly Part[] = []): string[] {
  const end = parts.findIndex(({ type }) => type !== 'tool_result');
  return idsOf(end === -1 ? parts : parts.slice(0, end));
}

/** Each result stands first in the turn after its call's, and each call has one. */
function checkOrder(rules: PartRules, spoken: readonly (readonly Part[])[]): Fault | undefined {
  // The work that is not finished began with the user's last words.
  const begin = spoken.findLastIndex(
    (parts) => parts.at(-1)?.type !== 'tool_result' && callsIn(parts).length === 0,
  );
  return firstRefusal(spoken, (parts, turn) => {
    const asked = callsIn(spoken[turn - 1]);
    const results = resultsIn(parts);
    const total = idsOf(parts).length;
    const wrong = results.findIndex((id, place) => !asked.includes(id) || results.indexOf(id) < place);
    const part = wrong === -1 && total > results.length ? results.length : wrong;
    if (part !== -1) return rules.resultWithoutCall(results[part] ?? '', { turn, part });
    const answered = resultsIn(spoken[turn + 1]);
    const open = callsIn(parts).filter((id) => !answered.includes(id));
    if (open.length > 0) return rules.callWithoutResult(open, turn);
    if (total > 0 && total < parts.length && rules.textBehindResult) return rules.textBehindResult();
    const first = parts.findIndex(({ type }) => type === 'tool_call');
    const call = parts[first];
    const isUnsigned = turn > begin && parts[first - 1]?.type !== 'opaque';
    return isUnsigned && call?.type === 'tool_call' ? rules.unsigned?.(call.name, turn) : undefined;
  });
}
