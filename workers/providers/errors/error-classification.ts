/**
 * The meaning of a provider's error, read in this order:
 *
 * 1. An adapter reads the facts of its SDK's error (`ErrorFacts`).
 * 2. `error-words.ts` takes the machine-readable words out of them, and the code of a connection that failed.
 * 3. `classifyError`, in this file, finds the code of the failure: by words that count more than the status, by the
 *    status, by the other words.
 * 4. `provider-texts.ts` reads texts, up to what they quote: a code for refusals that have none of their own.
 * 5. `refusals.ts` reads which part of the request was refused, so that the call may be made without it, and what the
 *    provider cannot do, so that the caller may go on without that.
 * 6. `retry-after.ts` reads how long the provider asks to wait.
 */

import { Failure, type FailureCode } from '../../../shared/failures.js';
import { givenFields, isObject } from '../../../shared/json/json.js';
import { type ProviderError, refusalWord, type Usage } from '../../../shared/protocol/attempts.js';
import { detailsIn, listOf, meaningsOf } from '../reply/answer-fields.js';
import { nameOf, unreachable, wordsOf } from './error-words.js';
import { codeByText, readAdvice, readPlace, readSizes } from './provider-texts.js';
import { type Refusal, readCapability, readRefusal } from './refusals.js';
import { isOfDay, readRetryAfter, type WaitFacts } from './retry-after.js';

/** The facts of an SDK's error, read by the adapter that knows the SDK. */
export interface ErrorFacts extends WaitFacts {
  status?: number | undefined;
  /** Machine-readable words for what went wrong: exception names, error codes, error types. */
  words?: readonly unknown[];
  /** The provider's name of the parameter that it refuses. */
  param?: string | undefined;
  /** The provider's own text, for refusals that have no code of their own; it is compared, and kept nowhere. */
  text?: string | undefined;
  /** The model that was asked. */
  model?: string | undefined;
  /** A step that operators can take, in our words, where the answer shows one. */
  advice?: string | undefined;
}

// Bedrock answers these with a 403.
const badCredentials: ReadonlySet<string> = new Set(
  listOf('ExpiredTokenException InvalidSignatureException UnrecognizedClientException'),
);
// OpenAI's words, in a 429 or inside a stream, also as its SDK has them (`resources/beta/agents/agents.d.ts`); then
// Anthropic's (`resources/shared.d.ts`), in a 429 or, with the last, a 402.
const spentCredit: ReadonlySet<string> = new Set(
  listOf(`
    insufficient_quota credit_balance_exhausted billing_not_active project_spend_limit_exceeded
    organization_spend_limit_exceeded organization_usage_limit_exceeded enforced_spend_limit_reached
    contract_spend_limit_reached linked_organization_spend_limit_reached
    linked_organization_billing_unavailable billing_error
  `),
);

/** The publishable part of a provider's error: never its message, which can quote the prompt or the key. */
export class ProviderCallError extends Error {
  /** Only of a 400 or 422, or that of a cache or a stream. */
  readonly refusal?: Refusal | undefined;
  /** Only of a 401: it names the model that was asked, so that another model might not have met it. */
  readonly namesModel?: true;
  /** The place in the request that the provider refuses, in its words; never a word of the caller's. */
  readonly place?: string | undefined;
  /** The capability that was refused, by the name that Claude Code has for it. */
  readonly capability?: string | undefined;
  /** Whether a 402 or a text says that credit is spent, which at a gateway may be so for a costly request alone. */
  readonly seemsOutOfCredit?: boolean | undefined;
  /** A step that operators can take, in our words. */
  readonly advice?: string | undefined;

  constructor(
    override readonly name: string,
    readonly status?: number,
    readonly word?: string,
  ) {
    super('The call to the provider failed.');
  }

  /** Whether no connection came about, so that nothing was sent. */
  get isUnreachable(): boolean {
    return unreachable.has(this.word ?? '');
  }

  /** Whether the account has no credit left, by its code: a text may be about the request. */
  get isOutOfCredit(): boolean {
    return spentCredit.has(this.word ?? '');
  }

  /** Whether every model of the account would have met the same; a 403 may be for a model that it may not use. */
  get concernsAccount(): boolean {
    const isRefused = (this.status === 401 && !this.namesModel) || badCredentials.has(this.word ?? '');
    return isRefused || this.isUnreachable || this.isOutOfCredit;
  }

  /** Whether an answer came whole that cannot be used: what the caller asks for may bring that about. */
  get isUnusable(): boolean {
    return this.name === unusable && this.word !== 'unfinished';
  }
}

const unusable = 'UnusableAnswer';

/** The provider's error that a call failed with; undefined for any other error. */
export const callErrorOf = (error: unknown): ProviderCallError | undefined =>
  error instanceof Failure && error.cause instanceof ProviderCallError ? error.cause : undefined;

// Errors inside a stream come after the 200.
const refusedAccess: ReadonlySet<string> = new Set([
  ...badCredentials,
  ...listOf('AccessDeniedException authentication_error permission_error'),
]);

/** Whether the provider refused who asks, which is us, and not what the caller asked for. */
export const refusesCredentials = ({ code, cause }: Failure): boolean =>
  code === 'provider_rejected' &&
  cause instanceof ProviderCallError &&
  (cause.status === 401 || cause.status === 403 || refusedAccess.has(cause.word ?? ''));

/** Classifies an SDK's error by the provider's answer, or as `provider_error`; a `Failure` within it stays one. */
export function classifyError(error: unknown, facts: ErrorFacts, nowMs = Date.now()): Failure {
  const own = ownFailure(error);
  if (own) return own;
  const name = nameOf(error);
  const words = wordsOf(error, facts);
  const known =
    codeByWord(words, overStatus) ?? codeByStatus(facts.status) ?? codeByWord(words, withoutStatus);
  const code = (known === 'provider_rejected' ? codeByText(facts.text) : known) ?? known ?? 'provider_error';
  const telling = [unreachable, badCredentials, spentCredit];
  const word =
    words.find((each) => telling.some((one) => one.has(each))) ?? words.find((each) => each !== name);
  const isByText = known === 'provider_rejected' && code === 'provider_error';
  const seemsOutOfCredit = facts.status === 402 || isByText || undefined;
  const advice = facts.advice ?? readAdvice(facts.text);
  const hasNoStream = code === 'provider_error' && noToolStream.test(facts.text ?? '');
  const refused = code === 'provider_rejected' || hasNoStream ? readRefused(facts, words) : {};
  const fields = givenFields({ seemsOutOfCredit, advice, ...refused });
  const cause = Object.assign(new ProviderCallError(name, facts.status, word), fields);
  const sizes = code === 'context_length_exceeded' ? readSizes(facts.text) : {};
  const isSpent = cause.isOutOfCredit || seemsOutOfCredit;
  const wait = isSpent ? { retryable: false } : readWait(code, facts, nowMs);
  return new Failure(code, { ...wait, ...sizes, cause });
}

/** llama.cpp says so with a 500: https://github.com/simonw/llm-llama-server/issues/3 */
const noToolStream = /^Cannot use tools with stream$/;

function readWait(code: FailureCode, facts: ErrorFacts, nowMs: number) {
  const isLimited = code === 'provider_rate_limited';
  if (!isLimited && code !== 'provider_error') return {};
  const retryAfterMs = readRetryAfter(facts, nowMs);
  return isLimited && retryAfterMs === undefined && isOfDay(facts) ? spentForDay : { retryAfterMs };
}

/** A quota of a day is asked again after minutes, since it may have been raised. */
const spentForDay = { retryable: false, retryAfterMs: 300_000 };

function readRefused(facts: ErrorFacts, words: readonly string[]) {
  const { status, param, details, text, model } = facts;
  const isNamed = param === 'model' || (model !== undefined && text?.includes(model));
  if (status === 401) return isNamed ? { namesModel: true } : {};
  const refusal = readRefusal(facts);
  // A server that checks a body by a schema answers 422: https://github.com/editor-code-assistant/eca/issues/231
  if (status !== 400 && status !== 422) return refusal === 'cache' || refusal === 'stream' ? { refusal } : {};
  const [violation] = detailsIn(details).flatMap(({ fieldViolations }) => fieldViolations ?? []);
  const field = param || (isObject(violation) && violation.field);
  const capability = readCapability({ text, words }, refusal);
  return givenFields({ refusal, capability, place: readPlace(field, text) });
}

/** Why an answer that came cannot be used. */
export type Unusable =
  | ('unfinished' | 'unknown_end' | 'blank' | 'oversized')
  | ('unknown_tool' | 'nameless_call' | 'too_many_calls' | 'interleaved_calls')
  | ('malformed_arguments' | 'malformed_call' | 'malformed_json');

/**
 * The failure for an answer that came but cannot be used. A provider that says nothing is well and would charge for the
 * next blank, too, and one that says too much will again: neither is retried. Only an answer that breaks off says
 * anything to the breaker: callers with odd tools or schemas could open it for the others.
 */
export function unusableAnswer(what: Unusable, usage?: Usage): Failure {
  const cause = new ProviderCallError(unusable, undefined, what);
  return new Failure('provider_error', { retryable: what !== 'blank' && what !== 'oversized', usage, cause });
}

/** The failure for a conversation that a classifier refused before any part of a reply: it also meets harmless work. */
export function refusedAnswer(category: string, usage?: Usage): Failure {
  const cause = new ProviderCallError('RefusedAnswer', undefined, `${refusalWord}${category}`);
  return new Failure('content_blocked', { usage, cause });
}

// The exceptions are Bedrock's whose HTTP status misleads: 429 for a model that is still loading, 424 for one that
// broke, 400 for a quota.
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html#API_runtime_Converse_Errors
// The codes are OpenAI's: https://platform.openai.com/docs/guides/error-codes, `ResponseError` of its SDK, and three
// that were seen, https://github.com/anomalyco/opencode/issues/25730.
const overStatus = meaningsOf<FailureCode>({
  provider_error: [
    ...spentCredit,
    ...listOf('ModelErrorException ModelNotReadyException ModelStreamErrorException ModelTimeoutException'),
    ...listOf('server_error vector_store_timeout server_is_overloaded slow_down'),
  ],
  provider_rate_limited: ['ServiceQuotaExceededException', 'ThrottlingException'],
  // The second is llama.cpp's, of older releases with a 500: https://github.com/ggml-org/llama.cpp/pull/15780
  context_length_exceeded: ['context_length_exceeded', 'exceed_context_size_error'],
  content_blocked: listOf(`
    content_filter content_policy_violation invalid_prompt bio_policy cyber_policy image_content_policy_violation
    misalignment_policy_violation
  `),
  provider_rejected: listOf(`
    data_residency_mismatch invalid_image invalid_image_format invalid_base64_image invalid_image_url
    invalid_image_mode image_too_large image_too_small image_file_too_large image_parse_error
    unsupported_image_media_type empty_image_file failed_to_download_image image_file_not_found
  `),
});

// Errors inside a stream come after the 200, so that only their word tells them apart.
const withoutStatus = meaningsOf<FailureCode>({
  provider_rate_limited: ['rate_limit_error', 'rate_limit_exceeded'],
  provider_rejected: listOf(`
    AccessDeniedException ValidationException authentication_error invalid_request_error not_found_error
    permission_error
  `),
  context_length_exceeded: ['request_too_large'],
});

function codeByWord(words: readonly string[], codes: ReadonlyMap<string, FailureCode>) {
  return words.map((word) => codes.get(word)).find((code) => code !== undefined);
}

function codeByStatus(status: number | undefined): FailureCode | undefined {
  if (status === undefined || status < 400) return undefined;
  if (status === 429) return 'provider_rate_limited';
  // Spent credit: https://platform.claude.com/docs/en/api/errors, https://openrouter.ai/docs/api-reference/errors
  if (status === 402) return 'provider_error';
  // Anthropic's comes from a proxy in front, without a word. https://platform.claude.com/docs/en/api/errors
  if (status === 413) return 'context_length_exceeded';
  // 408 is the provider's own timeout and 409 a lock it could not get: both SDKs that name them retry them.
  if (status === 408 || status === 409 || status >= 500) return 'provider_error';
  return 'provider_rejected';
}

function ownFailure(error: unknown): Failure | undefined {
  if (error instanceof Failure) return error;
  return error instanceof Error ? ownFailure(error.cause) : undefined;
}

/** The provider's status, its error type, and the place that it refuses; undefined if no call has failed. */
export function providerErrorOf({ cause }: Failure): ProviderError | undefined {
  if (!(cause instanceof ProviderCallError)) return undefined;
  const { name, status, word: type = name, place } = cause;
  return givenFields({ status, type, place });
}

/** An expected failure for operators: its cause by its name, or in the provider's terms; no text and no stack. */
export function describeFailure({ code, cause }: Failure): object {
  if (!(cause instanceof ProviderCallError)) return { code, error: cause && nameOf(cause) };
  const { name: error, status, word, place, advice } = cause;
  return { code, error, status, word, place, advice };
}
