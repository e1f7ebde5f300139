import type { Turn } from '../../shared/contract.js';
import type { ReplyBehaviour } from './behaviour.js';
import type { Call } from './call.js';
import { echo, firstHalf, lastUserText, splitText } from './echo.js';
import type { JsonObject } from './json.js';
import type { Ending, Reply } from './wire-format.js';

const charactersPerToken = 4;

/** Composes the reply to a call, independent of the wire format. */
export function composeReply(call: Call, turns: readonly Turn[], behaviour: ReplyBehaviour): Reply {
  const { says, ending } = behaviour;
  const given = typeof says === 'number' ? numberedPieces(says) : equalPieces(says);
  const text = sentText(given?.join('') ?? compose(call, turns, says === 'verbatim'), ending);
  return {
    callId: call.id,
    model: call.model ?? '',
    text,
    pieces: given ?? (call.facts.stream ? splitText(text) : []),
    ending,
    inputTokens: countTokens(turns.reduce((sum, turn) => sum + turn.content.length, 0)),
    outputTokens: countTokens(text.length),
    hasUsage: behaviour.withoutUsage !== true,
    createdAt: call.facts.receivedAt,
    request: call.body as JsonObject,
  };
}

function compose(call: Call, turns: readonly Turn[], verbatim: boolean): string {
  return verbatim ? lastUserText(turns) : echo(call.provider, turns);
}

function sentText(text: string, ending: Ending): string {
  if (ending === 'stop') return text;
  return ending === 'length' || ending === 'blocked-reply' ? firstHalf(text) : '';
}

function numberedPieces(amount: number): string[] {
  return Array.from({ length: amount }, (_, index) => (index === 0 ? '1' : ` ${index + 1}`));
}

const equalPieces = (says: Exclude<ReplyBehaviour['says'], number>): string[] | undefined =>
  typeof says === 'object' ? Array<string>(says.pieces).fill('x'.repeat(says.length)) : undefined;

/** An estimate, the same for every provider. */
function countTokens(characters: number): number {
  return Math.ceil(characters / charactersPerToken);
}
