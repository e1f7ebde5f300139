import { createHash } from 'node:crypto';
import { partsOf, type Turn } from '../../shared/conversation.js';
import type { ReplyCall } from './exchange.js';

/** A call that a model has made. */
export type MadeCall = Pick<ReplyCall, 'name' | 'arguments'>;

/** The signature of a call, in base64: the same for the same call. */
export const sign = (call: MadeCall, what = ''): string =>
  Buffer.from(
    `simulated ${createHash('sha256').update(`${call.name}${call.arguments}${what}`).digest('hex')}`,
  ).toString('base64');

/** The signature of a text. */
export const signText = (text: string): string => sign({ name: undefined, arguments: text });

/** The documented value for calls whose signature is not known. */
const skipped = 'skip_thought_signature_validator';

/** Whether a turn has a signature that is not as the model has made it for the call or the text behind it. */
export const hasForeignSignature = (turn: Turn, signatureOf: (call: MadeCall) => string): boolean =>
  partsOf(turn).some((part, index, parts) => {
    const next = parts[index + 1];
    if (part.type !== 'opaque' || part.data === skipped) return false;
    if (next?.type === 'text') return part.data !== signText(next.text);
    return next?.type !== 'tool_call' || part.data !== signatureOf(next);
  });
