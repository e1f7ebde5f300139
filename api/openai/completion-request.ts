import { type ProviderId, providerIds } from '../../shared/contract.js';
import {
  findUnsupportedParameter,
  ignoredHints,
  type ModelParameters,
  type ParameterName,
} from '../../shared/protocol/model-parameters.js';
import { invalidRequest } from '../../shared/validation.js';
import type { ChatCommand } from '../chat/chat-command.js';
import { checkModel, readTurns } from '../chat/chat-request.js';
import type { CompletionBody } from './completion-body.js';
import { modelNotFound } from './openai-error.js';

/** A request in the terms of the chat service, and the form of its answer. */
export interface CompletionRequest extends Pick<ChatCommand, 'provider' | 'turns' | 'parameters'> {
  model: string;
  isLowPriority: boolean;
  isStream: boolean;
  /** Whether a stream ends with the token counts. */
  includesUsage: boolean;
}

/** Reads a body; `named` is `X-LLM`'s provider. Throws `invalid_request`, `empty_conversation`, `modelNotFound`. */
export function toCompletionRequest(
  fields: CompletionBody,
  named: ProviderId | undefined,
): CompletionRequest {
  const { provider, model } = readModel(fields.model, named);
  if (fields.stream_options && fields.stream !== true)
    throw invalid('/stream_options', 'is for streams alone');
  return {
    provider,
    model,
    turns: readTurns({ messages: fields.messages.map(toMessage) }),
    parameters: readParameters(fields, provider),
    isLowPriority: fields.service_tier === 'flex',
    isStream: fields.stream === true,
    includesUsage: fields.stream_options?.include_usage === true,
  };
}

const invalid = (pointer: string, detail: string) => invalidRequest([{ pointer, detail }]);

/** `provider/model`, or a bare model of the provider that the header names. */
function readModel(id: string, named: ProviderId | undefined): { provider: ProviderId; model: string } {
  const prefix = providerIds.find((each) => id.startsWith(`${each}/`));
  if (prefix !== undefined && named !== undefined && prefix !== named)
    throw invalid('/model', 'names another provider than X-LLM');
  const provider = prefix ?? named;
  const model = checkModel(prefix === undefined ? id : id.slice(prefix.length + 1));
  if (provider === undefined || model === undefined) throw modelNotFound();
  return { provider, model };
}

const toMessage = ({ role, content }: CompletionBody['messages'][number]) => ({
  role: role === 'developer' ? ('system' as const) : role,
  content: typeof content === 'string' ? content : content.map(({ text }) => text).join(''),
});

const fieldNames = {
  maxOutputTokens: 'max_completion_tokens',
  temperature: 'temperature',
  topP: 'top_p',
  stop: 'stop',
  seed: 'seed',
  frequencyPenalty: 'frequency_penalty',
  presencePenalty: 'presence_penalty',
  reasoningEffort: 'reasoning_effort',
} as const satisfies Record<ParameterName, keyof CompletionBody>;

/** The fields that the provider does not take, and is asked without. */
export const ignoredFieldsOf = (provider: ProviderId, parameters: ModelParameters = {}): string[] =>
  ignoredHints(provider, parameters).map((name) => fieldNames[name]);

/** The parameters for the model, with hints that the provider ignores; undefined without any. */
function readParameters(fields: CompletionBody, provider: ProviderId): ModelParameters | undefined {
  const { stop, max_tokens: older, max_completion_tokens: limit = older } = fields;
  if (typeof older === 'number' && typeof limit === 'number' && older !== limit)
    throw invalid('/max_tokens', 'must be the same as max_completion_tokens, or absent');
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
  } satisfies Record<ParameterName, unknown>;
  const entries = Object.entries(given).filter(([, value]) => value !== undefined && value !== null);
  const parameters = Object.fromEntries(entries) as ModelParameters;
  const unsupported = findUnsupportedParameter(provider, parameters);
  if (unsupported !== undefined)
    throw invalid(`/${fieldNames[unsupported]}`, 'is not supported by this provider, or not with this value');
  return entries.length === 0 ? undefined : parameters;
}
