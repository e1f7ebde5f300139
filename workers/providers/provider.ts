import { createHash, randomUUID } from 'node:crypto';
import type { ProviderId } from '../../shared/contracts/contract.js';
import {
  type ImagePart,
  isBlank,
  type Part,
  type TextPart,
  type ToolCallPart,
  type ToolResultPart,
  type Turn,
} from '../../shared/conversation.js';
import type { Filling } from '../../shared/json/json-worker.js';
import type { ModelParameters, ParameterName } from '../../shared/models/model-parameters.js';
import type { Usage } from '../../shared/protocol/attempts.js';
import type { Mark } from '../../shared/protocol/parts.js';
import type { withTimeout } from '../../shared/runtime/retry.js';
import type { AddedPart } from './errors/refusals.js';
import type { CallMeter } from './reply/call-meter.js';
import { toObjectText } from './reply/exact-json.js';

/** A request to a provider. */
export interface ProviderRequest {
  /** The conversation in order; at least one turn, none of them blank. Stored images have their `data`. */
  turns: readonly Turn[];
  /** The provider's own model name. */
  model: string;
  /** Upper bound of the reply with its thinking, in the provider's tokens; absent means the adapter's own, if any. */
  maxOutputTokens?: number | undefined;
  /**
   * An adapter passes on those that its provider's models can be asked for; the others were refused before. Schemas are
   * as the caller sent them: the adapter fits them to its provider (`fitSchema`).
   */
  parameters?: Omit<ModelParameters, 'maxOutputTokens' | 'cacheKey'> | undefined;
  /** The ends for which a reply may be blank: the caller's own limit or text to stop at may come before any text. */
  blankAllowedFor?: readonly FinishReason[];
  /** Sent along as the header of that name; absent when the call is not traced. */
  traceparent?: string | undefined;
  /** Ends the call: its reason is then thrown, and the call's socket is closed. */
  signal: AbortSignal;
  /** The parts of the reply that its caller can be given beside texts and calls; see the job's field. */
  reasoning?: 'opaque' | 'shown' | undefined;
  /** Whether the provider is asked for a stream; absent means if the reply is read piece by piece. */
  isStreamed?: boolean;
  /** Equal for requests that begin alike; absent where no provider needs it. */
  cacheKey?: string | undefined;
  /** Keyed hash of the user who asks; absent where the provider does not get it. */
  user?: string | undefined;
  /** Whether the model is asked for its thinking in words. */
  asksThinking?: boolean;
  /** The parts that the adapter adds by itself at other times, and that this model has refused. */
  omits?: ReadonlySet<AddedPart> | undefined;
  /** Called for each complete line or frame of a stream, also one without text. */
  onLife?: () => void;
  /** Called for the first part of the reply: thinking, opaque data, text or a call. */
  onBegin?: () => void;
  /** Hears what the call costs; absent means that nothing does. */
  meter?: CallMeter | undefined;
  /** Completes a body before it is sent; absent where it is whole. */
  fillBody?: ((body: string) => Promise<Uint8Array>) | undefined;
  /** Bounds the wait behind a complete reply; by default with timers. */
  withTimeout?: typeof withTimeout;
}

/** Why a reply ended: finished, cut at the token limit, or withheld by the provider's content filter. */
export type FinishReason = 'stop' | 'length' | 'blocked';

/** A finished reply. */
export interface ProviderReply {
  /** The tape: its texts, thinking, opaque data and the arguments of its calls, joined. */
  text: string;
  /** Where its parts begin; absent for a reply that is text alone. */
  marks?: readonly Mark[];
  reason: FinishReason;
  /** The model that answered, in the provider's words. */
  model: string;
  usage?: Usage;
}

/**
 * Called with each piece of the tape as it arrives, and with the mark of the part that the piece begins, if it begins
 * one. The first text is not blank, unless the whole reply is.
 */
export type OnDelta = (text: string, mark?: Mark) => void;

/**
 * One provider's adapter: reshapes a conversation to what the provider accepts, calls it once through its own SDK,
 * without retries, and returns the finished reply. With `onDelta` it asks for a stream, unless the request says
 * otherwise. Throws a `Failure` for everything expected (`provider_error`, `provider_rejected`,
 * `provider_rate_limited`, `context_length_exceeded`, `content_blocked`), and the signal's own reason when the signal
 * ended the call.
 */
export interface Provider {
  readonly id: ProviderId;
  /** The hints that its requests have no field for; absent means none. */
  readonly ignores?: ReadonlySet<ParameterName>;
  /** The longest result of a call that its adapter reads, in characters; absent means that it reads none. */
  readonly parsesResultsTo?: number;
  /** Whether later system texts may stay messages of their own; absent means not. */
  readonly keepsSystem?: boolean;
  run(request: ProviderRequest, onDelta?: OnDelta): Promise<ProviderReply>;
  close(): void;
}

/**
 * Whether the provider is asked to cache the request: where its beginning will most likely be sent again, because an
 * agent or a conversation goes on. A single question would cost a quarter more for nothing.
 */
export const isCached = ({ turns, parameters, omits }: ProviderRequest, promptCache = 'off'): boolean =>
  promptCache !== 'off' &&
  !omits?.has('cache') &&
  (parameters?.tools !== undefined || turns.some(({ role }) => role === 'assistant'));

/** A call's id as this provider takes it: another's may be of any form. Ids only have to match within one request. */
export const toFittingId = (id: string, pattern: RegExp): string =>
  pattern.test(id) ? id : `c_${createHash('sha256').update(id).digest('base64url').slice(0, 22)}`;

/**
 * The arguments of an earlier call as the JSON text of an object, for providers that take nothing else. One that is
 * none, such as a text that the token limit has cut, is held by an object.
 */
export const argumentsOf = ({ arguments: text }: ToolCallPart): string =>
  toObjectText(text) ?? JSON.stringify({ _invalid: text });

/** The parts of a result as Claude takes them: no blank text, and at least one part. */
export function resultParts({ content }: ToolResultPart): (TextPart | ImagePart)[] {
  const parts: readonly (TextPart | ImagePart)[] =
    typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  const said = parts.filter((part) => part.type === 'image' || !isBlank(part.text));
  return said.length > 0 ? said : [{ type: 'text', text: '(no output)' }];
}

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

/**
 * SDKs write a body in one go, which takes up to two seconds for 32 MiB. So a long request goes through adapter and SDK
 * with a short word in place of each long text, and its body gets the texts at the end, in a thread (`JsonThread`).
 */
export interface StandIns extends Pick<Filling, 'mark' | 'texts'> {
  readonly turns: readonly Turn[];
}

/** The shortest text that is replaced: a word for a shorter one would cost more than the text. */
const minLength = 1024;

/** Adapters ask whether a text is blank, which its word is not. */
const isLong = (text: string, least: number): boolean => text.length >= least && !isBlank(text);

/** Puts words in the place of long texts: of all that adapters hand on as they are. */
export function standIn(
  turns: readonly Turn[],
  { parsesResultsTo = 0 }: Pick<Provider, 'parsesResultsTo'>,
): StandIns {
  const mark = `text-${randomUUID()}-`;
  const texts: string[] = [];
  const short = (text: string, least = minLength) =>
    isLong(text, least) ? `${mark}${texts.push(text) - 1}.` : text;
  const ofPart = (part: Part): Part => {
    if (part.type === 'text') return { ...part, text: short(part.text) };
    if (part.type !== 'tool_result') return part;
    if (typeof part.content === 'string')
      return { ...part, content: short(part.content, Math.max(minLength, parsesResultsTo + 1)) };
    return {
      ...part,
      content: part.content.map((each) =>
        each.type === 'text' ? { ...each, text: short(each.text) } : each,
      ),
    };
  };
  const shortened = turns.map(({ role, content }) => ({
    role,
    content: typeof content === 'string' ? short(content) : content.map(ofPart),
  }));
  return { turns: shortened, mark, texts };
}
