import type { Turn } from '../../shared/contract.js';

/** One turn of a conversation whose system texts stand elsewhere. */
export interface AlternatingTurn {
  role: 'user' | 'assistant';
  content: string;
}

/** A conversation for providers with a field of its own for system texts and strict rules for the rest. */
export interface AlternatingConversation {
  /** Every system text in order, joined by a blank line; absent when there is none. */
  system?: string;
  /** Alternating, first and last by the user, never empty, none blank. */
  turns: AlternatingTurn[];
}

/** The shortest user turn, added where a provider demands one and the caller has none. */
export const continuation = 'Continue.';

const blankLine = '\n\n';

/** Reshapes turns to what Anthropic, Bedrock and Vertex AI all accept. Texts stay byte for byte, and in their order. */
export function toAlternating(turns: readonly Turn[]): AlternatingConversation {
  const spoken = speakSystemOnly(turns);
  const system = spoken.filter((turn) => turn.role === 'system').map((turn) => turn.content);
  const alternating = betweenUserTurns(mergeRuns(spoken));
  return system.length === 0
    ? { turns: alternating }
    : { system: system.join(blankLine), turns: alternating };
}

/** Gives system texts to the user when there is no other turn, so that there is one to reply to. */
export function speakSystemOnly(turns: readonly Turn[]): Turn[] {
  return turns.every((turn) => turn.role === 'system')
    ? turns.map((turn) => ({ role: 'user', content: turn.content }))
    : [...turns];
}

/** The turns that are not system texts, those of one role in a row joined by a blank line. */
function mergeRuns(turns: readonly Turn[]): AlternatingTurn[] {
  const runs: AlternatingTurn[] = [];
  for (const { role, content } of turns) {
    if (role === 'system') continue;
    const last = runs.at(-1);
    if (last?.role === role) last.content += blankLine + content;
    else runs.push({ role, content });
  }
  return runs;
}

function betweenUserTurns(turns: AlternatingTurn[]): AlternatingTurn[] {
  const added: AlternatingTurn = { role: 'user', content: continuation };
  const before = turns.at(0)?.role === 'user' ? [] : [added];
  const after = turns.at(-1)?.role === 'user' ? [] : [added];
  return [...before, ...turns, ...after];
}
