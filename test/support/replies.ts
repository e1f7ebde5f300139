import { expect } from 'vitest';
import type { Part, Turn } from '../../shared/conversation.js';
import { givenFields } from '../../shared/json/json.js';
import { piecesOf } from '../../shared/protocol/parts.js';
import type {
  FinishReason,
  Provider,
  ProviderReply,
  ProviderRequest,
} from '../../workers/providers/provider.js';

/** The calls of a reply, in their order. */
export const callsOf = (reply: Parameters<typeof piecesOf>[0]) =>
  piecesOf(reply).flatMap((piece) => (piece.kind === 'call' ? [piece] : []));

/** One call of a provider in a test. */
export interface ProviderCommand {
  model: string;
  stream: boolean;
  turns?: readonly Turn[];
  /** Null means none; 4096 by default. */
  maxOutputTokens?: number | null;
  parameters?: ProviderRequest['parameters'];
  blankAllowedFor?: FinishReason[];
  reasoning?: ProviderRequest['reasoning'];
  asksThinking?: boolean;
  user?: string;
  omits?: ProviderRequest['omits'];
  signal?: AbortSignal;
  withTimeout?: ProviderRequest['withTimeout'];
  meter?: ProviderRequest['meter'];
  onLife?: () => void;
  /** Whether it is asked for as a stream, although it is not read as one. */
  isStreamed?: boolean;
  /** Called with each delta of a stream. */
  onDelta?: (text: string) => void;
}

/** Makes the call, and checks that the deltas of a stream add up to the text of the reply, unless that was blocked. */
export async function ask(
  provider: Provider,
  {
    model,
    stream,
    turns = [{ role: 'user', content: 'Hello' }],
    maxOutputTokens = 4096,
    parameters,
    blankAllowedFor = [],
    reasoning,
    asksThinking,
    user,
    omits,
    signal = new AbortController().signal,
    withTimeout,
    onLife,
    isStreamed,
    meter,
    onDelta,
  }: ProviderCommand,
): Promise<ProviderReply & { deltas: string[] }> {
  const deltas: string[] = [];
  const collect = (text: string) => {
    deltas.push(text);
    onDelta?.(text);
  };
  const hooks = givenFields({ withTimeout, onLife, reasoning, asksThinking, user, omits, isStreamed, meter });
  const limit = maxOutputTokens === null ? {} : { maxOutputTokens };
  const request = { turns, model, ...limit, parameters, blankAllowedFor, signal, ...hooks };
  const reply = await (stream ? provider.run(request, collect) : provider.run(request));
  if (stream && reply.reason !== 'blocked') expect(deltas.join('')).toBe(reply.text);
  return { ...reply, deltas };
}

/** The parts of a turn that sends a reply back: all but its thinking in words. */
export const partsOfReply = (reply: Parameters<typeof piecesOf>[0]): Part[] =>
  piecesOf(reply).flatMap((piece): Part[] => {
    switch (piece.kind) {
      case 'text':
        return [{ type: 'text', text: piece.text }];
      case 'call':
        return [{ type: 'tool_call', id: piece.id, name: piece.name, arguments: piece.arguments }];
      case 'opaque': {
        const { kind: type, ...opaque } = piece;
        return [{ type, ...opaque }];
      }
      default:
        return [];
    }
  });
