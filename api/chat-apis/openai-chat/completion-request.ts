import type { Request as HttpRequest, Response as HttpResponse } from 'express';
import { type ProviderId, providerIds } from '../../../shared/contracts/contract.js';
import { givenFields } from '../../../shared/json/json.js';
import { findAlias, type ModelAlias } from '../../../shared/models/model-names.js';
import {
  type ModelParameters,
  modelParametersSchema,
  type ParameterName,
} from '../../../shared/models/model-parameters.js';
import { findUnsupported, ignoredHints } from '../../../shared/models/provider-support.js';
import type { ChatContent } from '../../../shared/protocol/chat-content.js';
import { invalid, invalidRequest } from '../../../shared/validation.js';
import type { ChatCommand } from '../../chat/chat-command.js';
import { prefersStrict } from '../../http/prefer.js';
import { listFields, type UnknownField, unknownFieldsOf } from '../../http/query.js';
import { checkModel } from '../request-options.js';
import { type CompletionBody, fieldNames, unservedFields } from './completion-body.js';
import { readConversation } from './conversation.js';
import type { RequestImages } from './images.js';
import { modelNotFound } from './openai-error.js';
import { inFormat, inTool, invalidSchema, readTools } from './tools-body.js';

/** A request in the terms of the chat service, and the form of its answer. */
export interface CompletionRequest
  extends ChatContent,
    Pick<ChatCommand, 'provider' | 'changes' | 'reasoning'> {
  model: string;
  /** The model's name in the reply: `provider/model`, or the name of `MODEL_ALIASES` that was asked for. */
  replyModel: string;
  isLowPriority: boolean;
  isStream: boolean;
  /** Whether a stream ends with the token counts. */
  includesUsage: boolean;
}

/**
 * Reads a body; `named` is `X-LLM`'s provider. Throws `invalid_request`, `empty_conversation`, `modelNotFound`, and
 * what `images` throws.
 */
export function toCompletionRequest(
  fields: CompletionBody,
  named: ProviderId | undefined,
  { images, aliases = [] }: { images: RequestImages; aliases?: readonly ModelAlias[] },
): CompletionRequest {
  const { provider, model, replyModel } = readModel(fields.model, named, aliases);
  if (fields.stream_options && fields.stream !== true)
    throw invalid('/stream_options', 'is only for streams');
  const { turns, changes } = readConversation(fields.messages, { provider, images });
  const parameters = readParameters(fields);
  refuseUnsupported(provider, parameters);
  return {
    provider,
    model,
    replyModel,
    turns,
    changes,
    parameters: Object.keys(parameters).length === 0 ? undefined : parameters,
    // Its answer has a place for opaque parts at calls alone.
    reasoning: parameters.tools && 'opaque',
    isLowPriority: fields.service_tier === 'flex',
    isStream: fields.stream === true,
    includesUsage: fields.stream_options?.include_usage === true,
  };
}

/** `provider/model`, or a bare model of the provider that the header names, or else an alias. */
function readModel(id: string, named: ProviderId | undefined, aliases: readonly ModelAlias[]) {
  const prefix = providerIds.find((each) => id.startsWith(`${each}/`));
  if (prefix !== undefined && named !== undefined && prefix !== named)
    throw invalid('/model', 'names a different provider than X-LLM');
  const alias = prefix === undefined && named === undefined ? findAlias(id, aliases) : undefined;
  if (alias) return { ...alias, replyModel: id };
  const provider = prefix ?? named;
  const model = checkModel(prefix === undefined ? id : id.slice(prefix.length + 1));
  if (provider === undefined || model === undefined) throw modelNotFound();
  return { provider, model, replyModel: `${provider}/${model}` };
}

/** Throws `invalid_request` for what the provider cannot be asked for at all. */
function refuseUnsupported(provider: ProviderId, parameters: ModelParameters): void {
  const unsupported = findUnsupported(provider, parameters);
  if (unsupported === undefined) return;
  const { parameter, path = [], detail } = unsupported;
  const [first, ...rest] = path;
  if (first === undefined) throw invalid(`/${fieldNames[parameter]}`, detail);
  if (parameter === 'tools' && rest[0] === 'name') throw invalid(`/tools/${first}/function/name`, detail);
  throw invalidSchema(parameter === 'tools' ? inTool(Number(first), rest) : inFormat(path), detail);
}

/**
 * The fields that the provider does not take, and is asked without; `refused` are our names of those that only its
 * model does not take. A name may have a detail: `tools.strict`.
 */
export function ignoredFieldsOf(
  provider: ProviderId,
  parameters: ModelParameters = {},
  refused: readonly string[] = [],
): string[] {
  return [...ignoredHints(provider, parameters), ...refused].map((name) => {
    const [parameter = '', ...detail] = name.split('.');
    return [fieldNames[parameter as ParameterName] ?? parameter, ...detail].join('.');
  });
}

/** The parameters for the model, with hints that the provider ignores. */
function readParameters(fields: CompletionBody): ModelParameters {
  const { stop, max_tokens: older, max_completion_tokens: limit = older } = fields;
  if (typeof older === 'number' && typeof limit === 'number' && older !== limit)
    throw invalid('/max_tokens', 'must be the same as max_completion_tokens, or absent');
  // Optional: an unusable key is ignored.
  const cacheKey = modelParametersSchema.shape.cacheKey.safeParse(fields.prompt_cache_key);
  const stops = typeof stop === 'string' ? [stop] : stop;
  const given = {
    maxOutputTokens: limit ?? older,
    temperature: fields.temperature,
    topP: fields.top_p,
    stop: stops?.length === 0 ? undefined : stops,
    seed: fields.seed,
    frequencyPenalty: fields.frequency_penalty,
    presencePenalty: fields.presence_penalty,
    reasoningEffort: fields.reasoning_effort,
    verbosity: fields.verbosity,
    cacheKey: cacheKey.success ? cacheKey.data : undefined,
    ...readTools(fields),
  } satisfies Record<Exclude<ParameterName, 'topK' | 'thinking'>, unknown>;
  return givenFields(given);
}

/** The parameters of a chat, the providers that may get them, and the body as it was read. */
type Asked = Pick<ChatCommand, 'provider' | 'parameters' | 'fallback'> & { body: CompletionBody };

/** `refused` are our names of hints that the model was asked without, because it refused them. */
export type MarkIgnored = (writer: ProviderId, refused?: readonly string[]) => void;

/**
 * Returns a function that names in `X-Ignored-Fields` what a provider's answer ignores: fields that this server does
 * not know or serve, and hints that the provider does not take. With `Prefer: handling=strict` it throws for all of
 * them, and for hints that a fallback would be asked without. The body has been parsed.
 */
export function markIgnoredFields(request: HttpRequest, asked: Asked): MarkIgnored {
  const response = request.res as HttpResponse;
  const unknown = findUnknown(request.body, asked.body);
  const unserved = unservedFields(asked.body);
  if (prefersStrict(request.get('Prefer'))) refuse(unknown, asked);
  const mark: MarkIgnored = (writer, refused) => {
    const hints = ignoredFieldsOf(writer, asked.parameters, refused);
    const names = [...unknown.map(({ name }) => name), ...unserved, ...hints];
    if (names.length > 0) response.set('X-Ignored-Fields', listFields(names));
    else response.removeHeader('X-Ignored-Fields');
  };
  mark(asked.provider);
  return mark;
}

function refuse(unknown: readonly UnknownField[], asked: Asked): void {
  const { provider, parameters, fallback = [], body } = asked;
  const providers = [provider, ...fallback.map((target) => target.provider)];
  // One that cannot do it at all is not asked.
  const able = providers.filter((each) => !findUnsupported(each, parameters));
  const unsupported = able.flatMap((each) =>
    ignoredFieldsOf(each, parameters).map((name) => {
      const [field, ...part] = name.split('.');
      const what = part.length > 0 ? `has ${part.join('.')}, which is` : 'is';
      return { pointer: `/${field}`, detail: `${what} not taken by ${each}` };
    }),
  );
  const errors = [
    ...unknown.map(({ pointer }) => ({ pointer, detail: 'is not a field of a chat completion' })),
    ...unservedFields(body).map((name) => ({ pointer: `/${name}`, detail: 'is not supported here' })),
    ...unsupported,
  ];
  if (errors.length > 0) throw invalidRequest(errors);
}

/** The fields that were sent and not read: the schema leaves out those that it does not know. */
function findUnknown(sent: unknown, read: unknown, path: readonly (string | number)[] = []): UnknownField[] {
  if (sent === read || !isObject(sent) || !isObject(read)) return [];
  const isArray = Array.isArray(read);
  const unknown = isArray ? [] : unknownFieldsOf(sent, new Set(Object.keys(read)), path);
  const inner = Object.keys(sent)
    .filter((name) => Object.hasOwn(read, name))
    .flatMap((name) => findUnknown(sent[name], read[name], [...path, isArray ? Number(name) : name]));
  return [...unknown, ...inner];
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;
