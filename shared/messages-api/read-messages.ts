import type { ProviderId, Role } from '../contracts/contract.js';
import {
  type CacheTtl,
  type ImagePart,
  isBlank,
  type OpaquePart,
  type Part,
  type ToolCallPart,
  type ToolResultPart,
  type Turn,
} from '../conversation.js';
import { isObject } from '../json/json.js';
import { measureTree } from '../json/json-worker.js';
import type { ModelParameters } from '../models/model-parameters.js';
import { type ProviderModels, providerModels } from '../models/provider-models.js';
import { unsupportedReason } from '../models/provider-support.js';
import {
  type CacheControl,
  type CallBlock,
  type ImageBlock,
  type MessageBlock,
  type MessagesBody,
  parseMessagesBody,
  RefusedBody,
  type ResultBlock,
  type SystemMessage,
} from './messages-body.js';
import { type Effort, ignoredFields, readParameters } from './messages-parameters.js';
import { OfferedTools } from './offered-tools.js';
import { fromSignature } from './signatures.js';

export interface ReadMessagesOptions {
  /** The provider that will be asked; never `anthropic`, which is sent the body itself. */
  readonly provider: ProviderId;
  /** The provider's own name of the model, where it is known. */
  readonly model?: string | undefined;
  /** The part of an image that came as base64, wherever its bytes lie; undefined for what is no image. */
  toImage(source: { media_type: string; data: string }): ImagePart | undefined;
  /** JSON text of a value, in which long numbers keep their digits. */
  toText(value: unknown): string;
}

export interface ReadMessages {
  readonly turns: Turn[];
  readonly parameters: ModelParameters;
  /** The fields that this provider is not asked for, as paths without the places in arrays: `tools.input_examples`. */
  readonly ignored: string[];
  /** The first thing that the provider cannot do, with a JSON pointer into the body; the rest is then empty. */
  readonly refusal?: { readonly pointer: string; readonly detail: string };
  /** The names of tools that are sent under others, by those. */
  readonly toolNames: ReadonlyMap<string, string>;
}

/**
 * Reads a body of Anthropic's Messages API for another provider. `model`, `max_tokens` and `stream` are read elsewhere.
 * Takes a time that is linear in the size of the body.
 *
 * 1. The body's form: what no other provider has is refused by name, unknown fields are ignored.
 * 2. Its messages become turns. Messages of one role in a row are one turn, as they are for Anthropic; thinking of
 *    Anthropic's models is dropped; along the way tools are added and taken away.
 * 3. The parameters, with the tools that are offered at the end.
 */
export function readMessages(body: unknown, options: ReadMessagesOptions): ReadMessages {
  try {
    const read = parseMessagesBody(body);
    const reader = new MessagesReader(read, options);
    const { turns, tools, laterEffort } = reader;
    const { provider, model } = options;
    const parameters = readParameters(read, { provider, model, tools, laterEffort });
    const unread = unreadFields(body, read, provider);
    const ignored = [...new Set([...unread, ...ignoredFields(read, provider, parameters)])];
    return { turns, parameters, ignored, toolNames: tools.changedNames };
  } catch (error) {
    if (!(error instanceof RefusedBody)) throw error;
    const refusal = { pointer: error.pointer, detail: error.detail };
    return { turns: [], parameters: {}, ignored: [], refusal, toolNames: new Map() };
  }
}

/** The block of `system` in which Claude Code tells Anthropic about itself: each of its requests has another. */
const billingHeader = /^x-anthropic-billing-header:[^\n]*$/;

/** A system text that no provider but OpenAI takes at its place, marked as Claude Code marks its own. */
const remind = (text: string): string => `<system-reminder>\n${text}\n</system-reminder>`;

const betweenTexts = '\n\n';

/** Bounds the values in all signed data together; to parse as many takes 50 ms at most. */
const maxSignedValues = 20_000;
const maxSignedDepth = 128;

/** A message's content without the system's blocks. */
type TalkBlock = Exclude<MessageBlock, SystemMessage>['content'][number];

class MessagesReader {
  readonly turns: Turn[] = [];
  readonly tools: OfferedTools;
  /** The effort of the last system turn that names one. */
  laterEffort: Effort | undefined;
  #run: { readonly role: Role; readonly parts: Part[] } | undefined;
  readonly #ids = new Set<string>();
  /** Where the calls are that have no result yet, by their ids. */
  readonly #unanswered = new Map<string, string>();
  #signedValues = 0;
  readonly #habits: ProviderModels;

  constructor(
    body: MessagesBody,
    private readonly options: ReadMessagesOptions,
  ) {
    const { provider, toText } = options;
    this.#habits = providerModels[provider];
    const cacheOf = (mark: CacheControl) => this.#cacheOf(mark);
    this.tools = new OfferedTools(body.tools ?? [], { provider, cacheOf, toText });
    this.#readSystem(body.system ?? []);
    const lastUser = body.messages.findLastIndex(({ role }) => role === 'user');
    for (const [place, message] of body.messages.entries()) {
      const at = `/messages/${place}`;
      if (message.role === 'system') this.#readLaterSystem(message, { at, isBehindAll: place > lastUser });
      else this.#readTalk(message, at);
    }
    this.#refuseUnanswered();
    this.#endRun(this.#cacheOf(body.cache_control));
    if (this.turns.every(({ role }) => role === 'system'))
      throw new RefusedBody('/messages', 'must have a message that says something');
  }

  /** A mark without a time is one for five minutes. */
  #cacheOf(mark: CacheControl): CacheTtl | undefined {
    return this.#habits.takesMarks && mark ? (mark.ttl ?? '5m') : undefined;
  }

  #readSystem(blocks: NonNullable<MessagesBody['system']>): void {
    const { takesMarks } = this.#habits;
    const sent = blocks.filter(({ text }) => !isBlank(text) && (takesMarks || !billingHeader.test(text)));
    const texts = takesMarks
      ? sent
      : sent.slice(0, 1).map((first) => {
          return { ...first, text: sent.map(({ text }) => text).join(betweenTexts) };
        });
    for (const { text, cache_control } of texts) this.#add('system', [this.#toText(text, cache_control)]);
  }

  /** A turn of the system within the conversation: texts, changes of the tools, and an effort. */
  #readLaterSystem(message: SystemMessage, { at, isBehindAll }: { at: string; isBehindAll: boolean }): void {
    this.#refuseUnanswered();
    this.laterEffort = message.output_config?.effort ?? this.laterEffort;
    const isShown = message.clear_at !== 'next_user_message' || isBehindAll;
    for (const [place, block] of (message.content ?? []).entries()) {
      const pointer = `${at}/content/${place}/tool`;
      if (block.type === 'text') {
        if (isShown && !isBlank(block.text)) this.#addSystemText(block.text, block.cache_control);
      } else if (block.type === 'tool_removal') this.tools.remove(block.tool.name, `${pointer}/name`);
      else if (block.tool.type === 'tool_reference') this.tools.offer(block.tool.name, `${pointer}/name`);
      else this.tools.define(block.tool.definition, `${pointer}/definition`);
    }
  }

  #addSystemText(text: string, mark: CacheControl): void {
    if (this.#habits.alternation === undefined) this.#add('system', [this.#toText(text, mark)]);
    else this.#add('user', [this.#toText(remind(text), mark)]);
  }

  #readTalk({ role, content }: Exclude<MessageBlock, SystemMessage>, at: string): void {
    if (role === 'assistant' && this.#run?.role !== role) this.#refuseUnanswered();
    const blocks: readonly TalkBlock[] = content;
    this.#add(
      role,
      blocks.flatMap((block, place) => this.#toParts(block, `${at}/content/${place}`)),
    );
  }

  #toParts(block: TalkBlock, at: string): Part[] {
    switch (block.type) {
      case 'text':
        return isBlank(block.text) ? [] : [this.#toText(block.text, block.cache_control)];
      case 'image':
        return [this.#toImage(block, at)];
      case 'tool_use':
        return [this.#toCall(block, at)];
      case 'tool_result':
        return [this.#toResult(block, at)];
      case 'thinking':
        return this.#toOpaque(block.signature, at);
      case 'redacted_thinking':
        return [];
    }
  }

  #toText(text: string, mark: CacheControl) {
    return { type: 'text' as const, text, ...this.#marked(mark) };
  }

  #marked(mark: CacheControl): { cache?: CacheTtl } {
    const cache = this.#cacheOf(mark);
    return cache ? { cache } : {};
  }

  #toImage({ source, cache_control }: ImageBlock, at: string): ImagePart {
    const { provider, toImage } = this.options;
    if (source.type === 'url' && !this.#habits.images.fetches)
      throw new RefusedBody(`${at}/source/type`, 'must be base64: this provider fetches no images');
    const image = source.type === 'url' ? { type: 'image' as const, url: source.url } : toImage(source);
    if (image === undefined) throw new RefusedBody(`${at}/source`, 'is not an image of a supported type');
    const detail = unsupportedReason(provider, image);
    if (detail !== undefined) throw new RefusedBody(`${at}/source`, detail);
    return { ...image, ...this.#marked(cache_control) };
  }

  #toCall({ id, name, input, cache_control }: CallBlock, at: string): ToolCallPart {
    if (this.#ids.has(id)) throw new RefusedBody(`${at}/id`, 'is the id of another call');
    this.#ids.add(id);
    this.#unanswered.set(id, at);
    const sent = this.tools.sentName(name, `${at}/name`);
    const json = this.options.toText(input);
    return { type: 'tool_call', id, name: sent, arguments: json, ...this.#marked(cache_control) };
  }

  /** A result has one mark, whether it stands on the block or within. */
  #toResult(block: ResultBlock, at: string): ToolResultPart {
    const { tool_use_id: callId, content } = block;
    if (!this.#unanswered.delete(callId))
      throw new RefusedBody(`${at}/tool_use_id`, 'is not the id of a call before it that has no result yet');
    const inner = content ?? [];
    const parts = inner.map((each, place) => {
      const pointer = `${at}/content/${place}`;
      if (each.type === 'image') return this.#toImage({ ...each, cache_control: undefined }, pointer);
      if (each.type === 'text') return this.#toText(each.text, undefined);
      return this.#toText(this.tools.refer(each.tool_name, `${pointer}/tool_name`), undefined);
    });
    const texts = parts.flatMap((part) => (part.type === 'text' ? part.text : []));
    const hasImages = texts.length < parts.length;
    return {
      type: 'tool_result',
      callId,
      content: hasImages
        ? parts.filter((part) => part.type === 'image' || !isBlank(part.text))
        : texts.join('\n'),
      ...(block.is_error && { isError: true }),
      ...this.#marked(block.cache_control ?? inner.find((each) => each.cache_control)?.cache_control),
    };
  }

  /** Data of this provider, which come as the signature of a thinking block; all other thinking is dropped. */
  #toOpaque(signature: string, at: string): OpaquePart[] {
    const part = fromSignature(signature);
    if (part?.provider !== this.options.provider) return [];
    const limits = { maxDepth: maxSignedDepth, maxValues: maxSignedValues - this.#signedValues };
    const { values, excess } = measureTree(Buffer.from(part.data), limits);
    if (excess !== undefined)
      throw new RefusedBody(`${at}/signature`, `has, with those before it, too much: it ${excess}`);
    this.#signedValues += values;
    return [part];
  }

  #refuseUnanswered(): void {
    const [at] = this.#unanswered.values();
    if (at !== undefined)
      throw new RefusedBody(at, 'has no result: a tool_result with its id has to follow in the next message');
  }

  #add(role: Role, parts: readonly Part[]): void {
    if (parts.length === 0) return;
    if (role === 'system' || this.#run?.role !== role) {
      this.#endRun();
      this.#run = { role, parts: [] };
    }
    for (const part of parts) this.#run?.parts.push(part);
  }

  /** Writes a turn, unless it is of opaque parts alone. The mark is for its end. */
  #endRun(cache?: CacheTtl): void {
    const { role = 'user', parts = [] } = this.#run ?? {};
    this.#run = undefined;
    if (parts.every(({ type }) => type === 'opaque')) return;
    const last = parts.at(-1);
    if (cache && last && last.type !== 'opaque') parts.splice(-1, 1, { cache, ...last });
    const [first] = parts;
    const isText = parts.length === 1 && first?.type === 'text' && first.cache === undefined;
    this.turns.push({ role, content: isText ? first.text : parts });
  }
}

/** A name is the caller's own: shown are those that are words. */
const word = /^\w{1,60}$/;

/** The fields that were sent and not read, with the marks of the cache where the provider takes none. */
function unreadFields(sent: unknown, read: unknown, provider: ProviderId, path = ''): string[] {
  if (sent === read) return [];
  if (Array.isArray(sent) && Array.isArray(read))
    return sent.flatMap((each, place) => unreadFields(each, read[place], provider, path));
  if (!isObject(sent) || !isObject(read)) return [];
  return Object.entries(sent).flatMap(([name, value]) => {
    const field = path === '' ? name : `${path}.${name}`;
    const isMark = name === 'cache_control' && !providerModels[provider].takesMarks;
    const isRead = Object.hasOwn(read, name) && !isMark;
    if (isRead) return unreadFields(value, read[name], provider, field);
    return value !== null && word.test(name) ? [field] : [];
  });
}
