import { createHmac, hash } from 'node:crypto';
import type { PoolConfig } from '../../shared/config/pool-config.js';
import { type ImagePart, imagesOf, partsOf, type Turn } from '../../shared/conversation.js';
import { Failure } from '../../shared/failures.js';
import { isFromElsewhere } from '../../shared/models/image-limits.js';
import { isModelAllowed, outputLimitOf } from '../../shared/models/model-names.js';
import {
  hints,
  type ModelParameters,
  neutralValues,
  type ParameterName,
} from '../../shared/models/model-parameters.js';
import { providerModels } from '../../shared/models/provider-models.js';
import { parametersFor } from '../../shared/models/provider-support.js';
import type { ChatJob, JobTexts } from '../../shared/protocol/messages.js';
import { type AddedPart, addedParts } from '../providers/errors/refusals.js';
import type { FinishReason, ProviderRequest } from '../providers/provider.js';

/** The request of a job to its provider, the same in each of its calls. */
export type ModelRequest = Omit<ProviderRequest, 'signal' | 'onLife' | 'onBegin' | 'traceparent' | 'meter'>;

/** A job's request within its pool's limits. Throws `invalid_request` for a model or image host that is not allowed. */
export function toModelRequest(
  job: JobTexts & Pick<ChatJob, 'provider' | 'model' | 'user' | 'reasoning'>,
  settings: PoolConfig,
) {
  const model = job.model ?? settings.model;
  const { model: defaultModel, models, environment } = settings;
  // The API has checked this, but not where it has not heard of this pool yet.
  if (model === undefined || !isModelAllowed(model, { defaultModel, models, environment }))
    throw new Failure('invalid_request');
  const { imageHosts, userKey } = settings;
  const isForeign = (image: ImagePart) => imageHosts !== undefined && isFromElsewhere(image, imageHosts);
  if (imagesOf(job.turns).some(isForeign))
    throw new Failure('invalid_request', { refusedParameter: 'images' });
  const taken = parametersFor(job.provider, job.parameters ?? {});
  const { maxOutputTokens: asked, cacheKey = ownCacheKey(job), ...parameters } = taken;
  const limit = outputLimitOf(model, settings.maxOutputTokens);
  const maxOutputTokens = limit === undefined ? asked : Math.min(asked ?? limit, limit);
  return {
    turns: job.turns,
    model,
    maxOutputTokens,
    parameters,
    cacheKey,
    reasoning: job.reasoning,
    ...(settings.asksThinking && job.reasoning === 'shown' && { asksThinking: true }),
    blankAllowedFor: blankEndsOf(job),
    ...(userKey !== undefined && { user: hashUser(userKey, job.user) }),
  } satisfies ModelRequest;
}

/**
 * The name of a user for a provider, 32 characters of base64url: the same for the same user and key, and nothing that
 * could be found out without the key. Anthropic binds its newer models' thinking to it, so another key loses that once.
 * https://platform.claude.com/docs/en/api/messages#metadata
 */
const hashUser = (key: string, id: string): string =>
  createHmac('sha256', key).update(id).digest('base64url').slice(0, 32);

/** How many parts of a turn are in its key: a model's prompt cache goes by the beginning of a request, too. */
const maxKeyParts = 16;
const shorten = (_: string, value: unknown): unknown =>
  typeof value === 'string' ? value.slice(0, 65_536) : value;

/** The same for all requests of a user's conversation, which begin with the same turn of the user. */
function ownCacheKey({ provider, turns, user }: JobTexts & Pick<ChatJob, 'provider' | 'user'>) {
  if (!providerModels[provider].hasCacheKey) return undefined;
  const first = turns.find(({ role }) => role === 'user');
  const content =
    first && typeof first.content !== 'string' ? first.content.slice(0, maxKeyParts) : first?.content;
  const beginning = JSON.stringify([user, first && { ...first, content }], shorten);
  return hash('sha256', beginning, 'hex').slice(0, 32);
}

/**
 * A model may begin with a text to stop at, and one that thinks may use up the limit before it writes. After results
 * of calls Claude may have nothing to add. https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons
 */
function blankEndsOf({ turns, parameters = {} }: JobTexts): FinishReason[] {
  const { stop, maxOutputTokens } = parameters;
  const last = turns.at(-1);
  const hasResults = last !== undefined && partsOf(last).some(({ type }) => type === 'tool_result');
  return [
    ...(stop || hasResults ? (['stop'] as const) : []),
    ...(maxOutputTokens ? (['length'] as const) : []),
  ];
}

/** Size of the stored images. */
export const imageBytesOf = ({ turns }: Pick<ModelRequest, 'turns'>): number =>
  imagesOf(turns).reduce((sum, image) => sum + ('bytes' in image ? image.bytes : 0), 0);

/** A part that a call can be made without. Without `reasoning` the model is asked not to think: some need that. */
export type Omittable = ParameterName | AddedPart | 'signatures' | 'reasoning';

/** The key of a refused part: a hint with its value, some parts with whether tools stand beside them. */
export function keyOf(part: Omittable, { parameters = {} }: Pick<ModelRequest, 'parameters'>): string {
  if (part === 'reasoning' || part === 'stream') return `${part} ${parameters.tools !== undefined}`;
  const hint = [...hints].find((name) => name === part);
  return hint ? `${part} ${(parameters as ModelParameters)[hint]}` : part;
}

/** Whether the caller may be answered without it; a strict one not without hints, nor with a changed conversation. */
export const mayOmit = (part: Omittable, { isStrict }: Pick<ChatJob, 'isStrict'>): boolean =>
  !isStrict || !(hints.has(part as ParameterName) || part === 'reasoning' || part === 'laterSystem');

const remembered = [...hints, ...addedParts, 'reasoning'] as const;

/** The parts of a request that its model has refused: those alone whose omission changes it. */
export const refusedIn = (request: ModelRequest, isRefused: (key: string) => boolean): Omittable[] =>
  remembered.filter((part) => isRefused(keyOf(part, request)) && narrow(request, new Set([part])).isNarrower);

/** The request without `omitted`, and whether that changes it; `ignored` has the hints left out that had an effect. */
export function narrow(request: ModelRequest, omitted: ReadonlySet<Omittable>) {
  const { parameters = {} }: { parameters?: ModelParameters | undefined } = request;
  const kept = { ...parameters };
  for (const name of hints) if (omitted.has(name)) delete kept[name];
  if (omitted.has('reasoning')) kept.reasoningEffort = 'none';
  const changed = [...hints].filter((name) => parameters[name] !== kept[name]);
  const ignored = changed.filter(
    (name) => parameters[name] !== undefined && parameters[name] !== neutralValues[name],
  );
  const turns = omitted.has('signatures') ? request.turns.map(withoutSignatures) : request.turns;
  const isAdded = (part: AddedPart) => part !== 'cap' || request.maxOutputTokens === undefined;
  const parts = addedParts.filter((part) => omitted.has(part) && isAdded(part) && !request.omits?.has(part));
  const omits = parts.length > 0 ? new Set([...(request.omits ?? []), ...parts]) : request.omits;
  return {
    request: { ...request, parameters: kept, turns, ...(omits && { omits }) },
    isNarrower:
      changed.length + parts.length > 0 || turns.some((turn, place) => turn !== request.turns[place]),
    ignored: ignored.length > 0 ? ignored : undefined,
  };
}

function withoutSignatures(turn: Turn): Turn {
  const content = partsOf(turn).filter(({ type }) => type !== 'opaque');
  return content.length < partsOf(turn).length ? { ...turn, content } : turn;
}
