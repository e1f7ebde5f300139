import type { ProviderId } from '../contracts/contract.js';
import { isBlank, type Part, partsOf, type ToolCallPart, type Turn, textOf } from '../conversation.js';
import { providerModels } from '../models/provider-models.js';

/**
 * How a conversation is written differently for a provider, whose API cannot take it as it is: a system text as a
 * marked part of the user's turn, an added turn of the user, results of calls before what stood before them, a blank
 * message or part left out. In the order in which they are listed.
 */
export const changeNames = ['marked-system', 'continued', 'results-first', 'dropped-blank'] as const;
export type ConversationChange = (typeof changeNames)[number];

/** The changes that any of the lists has, each once; what a newer release calls its own is left out. */
export const listChanges = (...lists: (readonly string[] | undefined)[]): ConversationChange[] =>
  changeNames.filter((name) => lists.some((list) => list?.includes(name)));

/**
 * One turn of a conversation whose system texts stand elsewhere. Its content is a text, or parts without blank texts;
 * those of a user begin with the results, in the order of the calls before.
 */
export interface AlternatingTurn {
  role: 'user' | 'assistant';
  content: Turn['content'];
  /** The system texts that follow this turn of the user; only where they were asked to stay in their place. */
  system?: readonly string[];
}

/** The shortest user turn, added where a provider demands one and the caller has none. */
export const continuation = 'Continue.';

/** A system text for a provider that takes none at its place. The end shows where a user's words begin again. */
export const markSystem = (text: string): string => `<system>\n${text}\n</system>`;

/** Where system texts behind other turns stay messages of their own. */
export interface SystemOptions {
  /** Behind turns of the user that no other one follows; absent means nowhere. */
  keepsSystem?: boolean | undefined;
}

/**
 * The changes that a provider needs. `keepsSystem` as its API is asked; absent means as the provider's own API takes
 * system texts, which servers at other addresses and some models do not.
 */
export function changesFor(
  provider: ProviderId,
  turns: readonly Turn[],
  options: SystemOptions = {},
): ConversationChange[] {
  const { alternation } = providerModels[provider];
  if (alternation === undefined) return [];
  const { keepsSystem = alternation.keepsSystem } = options;
  const isParted = alternation.partsReplies && partedPlaces(turns).size > 0;
  return listChanges(toAlternating(turns, { keepsSystem }).changes, isParted ? ['continued'] : []);
}

/** The places of replies with thinking right behind another reply: their own request had a turn of the user between. */
export function partedPlaces(turns: readonly Turn[]): ReadonlySet<number> {
  const places = new Set<number>();
  let lastRole: Turn['role'] | undefined;
  for (const [place, turn] of turns.entries()) {
    const parts = partsOf(turn);
    const hasThinking = parts.some((part) => part.type === 'opaque');
    if (turn.role === 'assistant' && lastRole === 'assistant' && hasThinking) places.add(place);
    if (parts.some(({ type }) => type !== 'opaque')) lastRole = turn.role;
  }
  return places;
}

/**
 * Reshapes turns to what Anthropic, Bedrock and Vertex AI all accept: the system texts that begin the conversation, and
 * the other turns, which alternate, first and last by the user, never empty, none blank. Texts stay byte for byte and
 * where they are, those of one role in a row as parts of one turn. A later system text is a marked part of the user's
 * turn at its place, or that turn. With `keepsSystem` it stays one behind the user's turn that a reply follows, or
 * nothing. What comes behind a reply never changes what stands before it, so what a model has read stays as it was.
 */
export function toAlternating(turns: readonly Turn[], { keepsSystem = false }: SystemOptions = {}) {
  const changes = new Set<ConversationChange>();
  const { system, runs } = toRuns(turns, { keepsSystem, changes });
  const alternating = betweenUserTurns(withResultsFirst(runs, changes), changes);
  return { system, turns: alternating, changes: listChanges([...changes]) };
}

type Changes = Set<ConversationChange>;

interface Run {
  role: AlternatingTurn['role'];
  contents: Turn['content'][];
  system?: readonly string[];
}

/** The turns that are not system texts, those of one role in a row as one, and the system texts of the beginning. */
function toRuns(turns: readonly Turn[], options: { keepsSystem: boolean; changes: Changes }) {
  const runs: Run[] = [];
  const system: string[] = [];
  let later: string[] = [];
  for (const { role, content: given } of turns) {
    const content = typeof given === 'string' ? given : given.filter(saysSomething);
    if (role === 'system') (runs.length > 0 ? later : system).push(textOf({ content: given }));
    else if (content.length > 0) {
      placeSystem(runs, later, { ...options, isBeforeUser: role === 'user' });
      later = [];
      addTo(runs, role, content);
    }
    if (role !== 'system' && typeof given !== 'string' && given.some(isDropped))
      options.changes.add('dropped-blank');
  }
  placeSystem(runs, later, { ...options, isBeforeUser: false });
  return { system, runs: runs.map(joined) };
}

interface Placing {
  keepsSystem: boolean;
  changes: Changes;
  isBeforeUser: boolean;
}

/** Puts system texts behind the runs. */
function placeSystem(runs: Run[], texts: readonly string[], placing: Placing): void {
  if (texts.length === 0) return;
  const last = runs.at(-1);
  if (placing.keepsSystem && !placing.isBeforeUser && last?.role === 'user') last.system = texts;
  else {
    placing.changes.add('marked-system');
    for (const text of texts) addTo(runs, 'user', markSystem(text));
  }
}

function addTo(runs: Run[], role: Run['role'], content: Turn['content']): void {
  const last = runs.at(-1);
  if (last?.role === role) last.contents.push(content);
  else runs.push({ role, contents: [content] });
}

const saysSomething = (part: Part): boolean => part.type !== 'text' || !isBlank(part.text);
const isDropped = (part: Part): boolean => part.type === 'text' && part.text !== '' && isBlank(part.text);

function joined({ contents, ...run }: Run): AlternatingTurn {
  const [first = '', ...others] = contents;
  return {
    ...run,
    content: others.length === 0 ? first : contents.flatMap((content) => partsOf({ content })),
  };
}

/** Providers want the results of all calls at once, before any text. */
function withResultsFirst(runs: readonly AlternatingTurn[], changes: Changes): AlternatingTurn[] {
  return runs.map((run, place) => {
    const { role, content } = run;
    if (typeof content === 'string' || role === 'assistant') return run;
    const places = new Map(callsIn(runs.slice(place - 1, place)).map(({ id }, order) => [id, order]));
    const orderOf = (part: Part) => (part.type === 'tool_result' ? (places.get(part.callId) ?? 0) : Infinity);
    const ordered = content.toSorted((a, b) => (orderOf(a) === orderOf(b) ? 0 : orderOf(a) - orderOf(b)));
    if (ordered.some((part, at) => part !== content[at])) changes.add('results-first');
    return { ...run, content: ordered };
  });
}

/** The calls in turns. */
export const callsIn = (turns: readonly Pick<Turn, 'content'>[]): ToolCallPart[] =>
  turns.flatMap((turn) => partsOf(turn).filter((part) => part.type === 'tool_call'));

function betweenUserTurns(turns: AlternatingTurn[], changes: Changes): AlternatingTurn[] {
  const added: AlternatingTurn = { role: 'user', content: continuation };
  const before = turns.at(0)?.role === 'user' ? [] : [added];
  const after = turns.length === 0 || turns.at(-1)?.role === 'user' ? [] : [added];
  if (before.length + after.length > 0) changes.add('continued');
  return [...before, ...turns, ...after];
}
