import { imagesOf, partsOf, type Turn, textOfResult } from '../../shared/conversation.js';
import { Failure } from '../../shared/failures.js';
import type { CallTokens } from '../../shared/protocol/entries.js';
import { providerErrorOf } from '../providers/errors/error-classification.js';
import type { ProviderReply } from '../providers/provider.js';
import type { CallMeter, Heard } from '../providers/reply/call-meter.js';
import type { MeteredCall, Next, PreparedCall } from './call.js';
import type { ModelRequest } from './model-request.js';
import { codeOfError, type WorkCode } from './outcomes.js';

/** Makes the call, and adds its row to the job, however it ends, if a connection took it. */
export async function meter(call: PreparedCall, next: Next<MeteredCall>): Promise<ProviderReply> {
  const { job } = call;
  const cost = new CallCost();
  const startedAt = job.now();
  const record = (code: WorkCode, error?: unknown) => {
    if (cost.requests === 0) return;
    const { kind, sent } = call;
    const times = { startedAt, endedAt: job.now() };
    const { status, type } = (error instanceof Failure && providerErrorOf(error)) || {};
    job.calls.push({ kind, ...times, model: sent.model, code, type, ...cost.describe(sent, status) });
  };
  try {
    const reply = await next({ ...call, meter: cost });
    record(reply.reason === 'blocked' ? 'content_blocked' : 'ok');
    return reply;
  } catch (error) {
    record(codeOfError(error), error);
    throw error;
  }
}

const idHeaders = ['x-request-id', 'request-id', 'x-amzn-requestid'];

/** The facts of one call's cost, as they become known. */
class CallCost implements CallMeter {
  requests = 0;
  #status: number | undefined;
  #headerId: string | undefined;
  #heard: Heard = { usage: {}, isComplete: false, bytes: 0 };

  sent(): void {
    this.requests += 1;
  }

  head({ status, headers }: Parameters<CallMeter['head']>[0]): void {
    this.#status = status;
    this.#headerId = idHeaders.map((name) => headers[name]).find((id) => isId(id));
  }

  heard(heard: Heard): void {
    this.#heard = heard;
  }

  /** `status` is that of the provider's error, which may come behind a 200. */
  describe(sent: ModelRequest, status = this.#status) {
    const { model: answered, tier, answerId } = this.#heard;
    const isTold = this.#isTold(status);
    const known = isTold ? ('told' as const) : ('estimated' as const);
    const requestId = this.#headerId ?? answerId;
    const tokens = isTold ? this.#told : this.#estimate(sent);
    return { answered, known, status, requests: this.requests, tokens, tier, requestId };
  }

  /** Both counts came with a whole reply; an error before any part of one costs nothing. */
  #isTold(status = 0): boolean {
    const { usage, isComplete, bytes } = this.#heard;
    const { inputTokens, outputTokens } = usage;
    if (isComplete) return inputTokens !== undefined && outputTokens !== undefined;
    return status >= 400 && bytes === 0 && inputTokens === undefined;
  }

  get #told(): CallTokens {
    const { usage } = this.#heard;
    return {
      input: usage.inputTokens ?? 0,
      cached: usage.cachedTokens ?? 0,
      written: usage.cacheWriteTokens ?? 0,
      writtenFor1h: usage.cacheWrite1hTokens ?? 0,
      output: usage.outputTokens ?? 0,
      thinking: usage.reasoningTokens ?? 0,
    };
  }

  /** The counts that were told; for the rest a token for four bytes, and a thousand for an image. */
  #estimate(sent: ModelRequest): CallTokens {
    const { usage, bytes } = this.#heard;
    const written = Math.ceil(bytes / bytesPerToken);
    return {
      ...this.#told,
      input: usage.inputTokens ?? estimateInput(sent),
      // The count at the beginning of a stream is of the beginning.
      output: Math.max(usage.outputTokens ?? 0, written),
    };
  }
}

const isId = (id: unknown): id is string => typeof id === 'string' && /^[\w.:-]{1,128}$/.test(id);

const bytesPerToken = 4;
const tokensPerImage = 1000;

function estimateInput({ turns, parameters }: ModelRequest): number {
  const { tools } = parameters ?? {};
  const bytes = turns.reduce((sum, turn) => sum + textBytesOf(turn), tools ? byteLength(tools) : 0);
  return Math.ceil(bytes / bytesPerToken) + imagesOf(turns).length * tokensPerImage;
}

const byteLength = (value: object): number => Buffer.byteLength(JSON.stringify(value));

function textBytesOf(turn: Turn): number {
  return partsOf(turn).reduce((sum, part) => {
    switch (part.type) {
      case 'text':
        return sum + Buffer.byteLength(part.text);
      case 'tool_call':
        return sum + Buffer.byteLength(part.name) + Buffer.byteLength(part.arguments);
      case 'tool_result':
        return sum + Buffer.byteLength(textOfResult(part));
      default:
        return sum;
    }
  }, 0);
}
