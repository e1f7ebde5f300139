import { createHash } from 'node:crypto';
import {
  isBlank,
  type Part,
  partsOf,
  type ToolCallPart,
  type ToolResultPart,
  type Turn,
  textOf,
} from '../../shared/conversation.js';
import { toObjectText } from './exact-json.js';
import type { ProviderRequest } from './provider.js';

/**
 * One turn of a conversation whose system texts stand elsewhere. Its content is a text, or parts without blank texts;
 * those of a user begin with the results, in the order of the calls before.
 */
export interface AlternatingTurn {
  role: 'user' | 'assistant';
  content: string | readonly Part[];
  /** A system text that follows this turn of the user; only where it was asked to stay in its place. */
  system?: string;
}

/** The shortest user turn, added where a provider demands one and the caller has none. */
export const continuation = 'Continue.';

const blankLine = '\n\n';

/**
 * Reshapes turns to what Anthropic, Bedrock and Vertex AI all accept: the system texts, joined by a blank line, absent
 * when there is none, and the other turns, which alternate, first and last by the user, never empty, none blank. Texts
 * stay byte for byte, and in their order.
 *
 * With `keepsSystem` system texts behind another turn stay there: behind the turn of the user before them, or behind
 * the next one where that follows at once. What comes later never moves them, so what a model has read stays as it was.
 */
export function toAlternating(
  turns: readonly Turn[],
  { keepsSystem = false } = {},
): { system?: string; turns: AlternatingTurn[] } {
  const { system, runs } = mergeRuns(speakSystemOnly(turns), keepsSystem);
  const alternating = betweenUserTurns(withResultsFirst(runs));
  return { ...(system.length > 0 && { system: system.join(blankLine) }), turns: alternating };
}

/**
 * Whether the provider is asked to cache the request: where its beginning will most likely be sent again, because an
 * agent or a conversation goes on. A single question would cost a quarter more for nothing.
 */
export const isCached = ({ turns, parameters, omits }: ProviderRequest, promptCache = 'off'): boolean =>
  promptCache !== 'off' &&
  !omits?.has('cache') &&
  (parameters?.tools !== undefined || turns.some(({ role }) => role === 'assistant'));

/** Gives system texts to the user when there is no other turn, so that there is one to reply to. */
export function speakSystemOnly(turns: readonly Turn[]): Turn[] {
  return turns.every((turn) => turn.role === 'system')
    ? turns.map((turn) => ({ role: 'user', content: turn.content }))
    : [...turns];
}

interface Run extends AlternatingTurn {
  content: string | Part[];
}

/** The turns that are not system texts, those of one role in a row as one, and the system texts of the top. */
function mergeRuns(turns: readonly Turn[], keepsSystem: boolean): { system: string[]; runs: Run[] } {
  const runs: Run[] = [];
  const system: string[] = [];
  const later: string[] = [];
  for (const { role, content: given } of turns) {
    const content = typeof given === 'string' ? given : given.filter(saysSomething);
    if (role === 'system') (keepsSystem && runs.length > 0 ? later : system).push(textOf({ content: given }));
    else if (content.length > 0) {
      if (role === 'assistant') placeBehind(runs, later.splice(0));
      addTo(runs, role, content);
    }
  }
  placeBehind(runs, later);
  return { system, runs };
}

function addTo(runs: Run[], role: Run['role'], content: Run['content']): void {
  const last = runs.at(-1);
  if (last?.role === role) last.content = join(last.content, content);
  else runs.push({ role, content });
}

/** Claude takes a system text behind a turn of the user alone, and not before another one. */
function placeBehind(runs: Run[], texts: readonly string[]): void {
  if (texts.length === 0) return;
  const system = texts.join(blankLine);
  const last = runs.at(-1);
  if (last?.role === 'user') last.system = system;
  else runs.push({ role: 'user', content: continuation, system });
}

const saysSomething = (part: Part): boolean => part.type !== 'text' || !isBlank(part.text);

/** Texts that meet are joined by a blank line. */
function join(before: string | Part[], after: string | Part[]): string | Part[] {
  if (typeof before === 'string' && typeof after === 'string') return before + blankLine + after;
  const parts = typeof before === 'string' ? [...partsOf({ content: before })] : before;
  const [first, ...others] = partsOf({ content: after });
  const last = parts.at(-1);
  if (last?.type === 'text' && first?.type === 'text')
    parts.splice(-1, 1, { type: 'text', text: last.text + blankLine + first.text });
  else if (first) parts.push(first);
  for (const part of others) parts.push(part);
  return parts;
}

/** Providers want the results of all calls at once, before any text. */
function withResultsFirst(runs: readonly AlternatingTurn[]): AlternatingTurn[] {
  return runs.map((run, place) => {
    const { role, content } = run;
    if (typeof content === 'string' || role === 'assistant') return run;
    const results = content.filter((part) => part.type === 'tool_result');
    const others = content.filter((part) => part.type !== 'tool_result');
    return { ...run, content: [...inOrderOf(callsIn(runs.slice(place - 1, place)), results), ...others] };
  });
}

/** The calls in turns. */
export const callsIn = (turns: readonly Pick<Turn, 'content'>[]): ToolCallPart[] =>
  turns.flatMap((turn) => partsOf(turn).filter((part) => part.type === 'tool_call'));

function inOrderOf(calls: readonly ToolCallPart[], results: readonly ToolResultPart[]): ToolResultPart[] {
  const places = new Map(calls.map(({ id }, place) => [id, place]));
  return results.toSorted((a, b) => (places.get(a.callId) ?? 0) - (places.get(b.callId) ?? 0));
}

function betweenUserTurns(turns: AlternatingTurn[]): AlternatingTurn[] {
  const added: AlternatingTurn = { role: 'user', content: continuation };
  const before = turns.at(0)?.role === 'user' ? [] : [added];
  const after = turns.at(-1)?.role === 'user' ? [] : [added];
  return [...before, ...turns, ...after];
}

/** A call's id as this provider takes it: another's may be of any form. Ids only have to match within one request. */
export const toFittingId = (id: string, pattern: RegExp): string =>
  pattern.test(id) ? id : `c_${createHash('sha256').update(id).digest('base64url').slice(0, 22)}`;

/**
 * The arguments of an earlier call as the JSON text of an object, for providers that take nothing else. One that is
 * none, such as a text that the token limit has cut, is held by an object.
 */
export const argumentsOf = ({ arguments: text }: ToolCallPart): string =>
  toObjectText(text) ?? JSON.stringify({ _invalid: text });

/** The text of a result as Claude takes it: not blank. */
export const resultText = ({ content }: ToolResultPart): string =>
  isBlank(content) ? '(no output)' : content;

/** Turns whose calls have ids of nine letters and digits, as Mistral demands: https://github.com/anomalyco/opencode/issues/1680 */
export const withPlainIds = (turns: readonly Turn[]): Turn[] =>
  turns.map((turn) =>
    typeof turn.content === 'string' ? turn : { ...turn, content: turn.content.map(withPlainId) },
  );

function withPlainId(part: Part): Part {
  if (part.type === 'tool_call') return { ...part, id: toPlainId(part.id) };
  return part.type === 'tool_result' ? { ...part, callId: toPlainId(part.callId) } : part;
}

const toPlainId = (id: string): string =>
  /^[a-z0-9]{9}$/i.test(id) ? id : createHash('sha256').update(id).digest('hex').slice(0, 9);
