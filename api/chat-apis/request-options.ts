import type { Request as HttpRequest, Response as HttpResponse } from 'express';
import { parseTargets } from '../../shared/config/variable-types.js';
import { type ProviderId, providerIds, type Target } from '../../shared/contracts/contract.js';
import type { Turn } from '../../shared/conversation.js';
import { Failure } from '../../shared/failures.js';
import { findAlias, type ModelAlias, modelName } from '../../shared/models/model-names.js';
import { invalid } from '../../shared/validation.js';
import { onCredentialsEnd, reloadAccess } from '../access/authentication.js';
import type { AuthenticatedRequest } from '../access/caller.js';
import type { Asker, Attachment, ChatCommand, StoreOptions } from '../chat/chat-command.js';
import { type Applied, markApplied, prefersAsync, prefersStrict, readWait } from '../http/prefer.js';
import { requestIdOf } from '../http/problem.js';
import { readIdempotencyKey } from '../http/query.js';
import { traceOf } from '../http/request-log.js';
import { markChat } from './mount.js';

/** The part of a command that the headers of its request decide. */
export type RequestOptions = Omit<
  ChatCommand,
  'provider' | 'model' | 'written' | 'unfitFor' | 'bytes' | 'stream'
>;

/**
 * Reads the headers that all APIs have: `Prefer`, `Idempotency-Key` and `X-LLM-Fallback`. Marks on the response which
 * preferences are applied and, once it is known, which stored chat it is, so that errors say it as well. `maxWaitS` is
 * the longest `wait` that a caller may ask for, in seconds, and `api` the API's name for operators. Throws
 * `invalid_request`.
 */
export function readOptions(
  request: AuthenticatedRequest,
  { maxWaitS, api }: { maxWaitS: number; api: string },
): { options: RequestOptions; applied: Applied } {
  const prefer = request.get('Prefer');
  const response = request.res as HttpResponse;
  const waitS = readWait(prefer, maxWaitS);
  const key = readIdempotencyKey(request.get('Idempotency-Key'));
  const isAsync = prefersAsync(prefer);
  const applied = { isStrict: prefersStrict(prefer), waitS };
  markApplied(response, applied);
  const onResolved: StoreOptions['onResolved'] = (id, facts) => markChat(response, id, facts);
  const storeOptions = { owner: request.user, key, isAsync, onResolved };
  const options = {
    requestId: requestIdOf(response),
    user: request.user.id,
    asker: readAsker(request, api),
    fallback: readFallback(request.get('X-LLM-Fallback')),
    isStrict: applied.isStrict,
    waitMs: waitS && waitS * 1000,
    ...attachmentOf(request),
    trace: traceOf(response),
    storeOptions: isAsync || key !== undefined ? storeOptions : undefined,
  };
  return { options, applied };
}

/** Who asks, and in which session: a client's own name for it, or that of Claude Code; none if it is no such name. */
function readAsker(request: AuthenticatedRequest, api: string): Asker {
  const { name, tokenId: token, session: isConsole } = request.user;
  const session = request.get('X-Session-Id') ?? request.get('X-Claude-Code-Session-Id') ?? '';
  return {
    name,
    api,
    ...(token !== undefined && { token }),
    ...(isConsole && { console: true }),
    ...(/^[\w.:-]{1,64}$/.test(session) && { session }),
  };
}

/** Its signal aborts when the client leaves, or with `unauthorized` when access ends. Throws as `onCredentialsEnd`. */
export function attachmentOf(request: HttpRequest): Attachment {
  const response = request.res as HttpResponse;
  const left = new AbortController();
  if (response.destroyed) left.abort();
  else {
    const stop = onCredentialsEnd(request, (failure) => left.abort(failure));
    response.once('close', () => {
      stop();
      if (!response.writableFinished) left.abort();
    });
  }
  return { signal: left.signal, confirmAccess: () => reloadAccess(request) };
}

/** The provider that `X-LLM` names; undefined without the header. Throws `unknown_provider`. */
export function readProvider(request: HttpRequest): ProviderId | undefined {
  const named = request.get('X-LLM');
  const provider = providerIds.find((id) => id === named);
  if (named !== undefined && provider === undefined) throw new Failure('unknown_provider');
  return provider;
}

/**
 * How long a client waits, in milliseconds: as its `X-Stainless-Timeout` says (openai-node, `src/client.ts`), or its
 * `X-Stainless-Read-Timeout`, the longest time between two pieces (openai-python, `src/openai/_base_client.py`).
 * Undefined for what is no time, such as the 0 of less than a second.
 */
export function readClientTimeoutMs(request: HttpRequest): number | undefined {
  const seconds = request.get('X-Stainless-Timeout') ?? request.get('X-Stainless-Read-Timeout');
  const isTime = seconds !== undefined && /^\d{1,9}(\.\d{1,9})?$/.test(seconds) && Number(seconds) > 0;
  return isTime ? Number(seconds) * 1000 : undefined;
}

/** For a model that does not exist, or that callers may not use. */
export const modelNotFound = (detail = mustBeUsable): Failure =>
  new Failure('not_found', { errors: [{ pointer: '/model', detail }] });

const mustBeUsable =
  'must name a model that may be used here, as provider/model or with X-LLM: openai, anthropic, bedrock or vertexai; GET /v1/models lists models';

/** The failure at an API where the model comes from the body: errors about the model point there. */
export function inBodyTerms(failure: Failure): Failure {
  const { code, facts } = failure;
  if (facts.modelUnknown)
    return modelNotFound('names a model that its provider does not know; GET /v1/models lists models');
  return code === 'invalid_request' && facts.errors?.[0]?.pointer === 'X-LLM-Model'
    ? modelNotFound()
    : failure;
}

interface ReadModelOptions {
  aliases?: readonly ModelAlias[];
  /** The provider that a bare name stands for at this API; absent means none. */
  ofBare?: (name: string) => ProviderId | undefined;
}

/** Reads `provider/model`, or a bare model of the provider that the header names, or else an alias. */
export function readModel(
  id: string,
  named: ProviderId | undefined,
  { aliases = [], ofBare = () => undefined }: ReadModelOptions,
) {
  const prefix = providerIds.find((each) => id.startsWith(`${each}/`));
  if (prefix !== undefined && named !== undefined && prefix !== named)
    throw invalid('/model', 'names a different provider than X-LLM');
  const alias = prefix === undefined && named === undefined ? findAlias(id, aliases) : undefined;
  if (alias) return { ...alias, replyModel: id };
  const bare = prefix === undefined && named === undefined ? ofBare(id) : undefined;
  const provider = prefix ?? named ?? bare;
  const model = checkModel(prefix === undefined ? id : id.slice(prefix.length + 1));
  if (provider === undefined || model === undefined) throw modelNotFound();
  return { provider, model, replyModel: bare ? id : `${provider}/${model}` };
}

/** Returns the model's name; throws `invalid_request` for what cannot be one. */
export function checkModel(model: string | undefined): string | undefined {
  if (model === undefined || modelName.test(model)) return model;
  throw invalid('X-LLM-Model', 'is not a model name');
}

/** The providers of `X-LLM-Fallback`, in its order; undefined without it. Throws `invalid_request`. */
function readFallback(header: string | undefined): Target[] | undefined {
  if (header === undefined) return undefined;
  const targets = parseTargets(header);
  if (targets) return targets;
  throw invalid(
    'X-LLM-Fallback',
    'must be none, or a comma list of up to four different providers or provider/model',
  );
}

/** The turns of a conversation, and how they differ from its messages; undefined means not at all. */
export interface ReadConversation {
  turns: Turn[];
  changes: ChatCommand['changes'];
}
