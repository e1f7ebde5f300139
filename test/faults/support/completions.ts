import type { ProviderId } from '../../../shared/contracts/contract.js';
import { promptCanary } from '../../support/canaries.js';
import type { ChatReply, Deployment } from '../../support/deployment.js';
import {
  askWithTools,
  clockTool,
  hasBegunCall,
  type ReadToolCompletion,
  weatherTool,
} from '../../support/tool-completions.js';
import type { Asked, Requests } from './requests.js';

/** A request of `/v1/chat/completions`, which offers two tools. */
export interface CompletionCall {
  provider?: ProviderId;
  model?: string;
  /** Of the body. */
  fields?: object;
  headers?: Record<string, string>;
  url?: string;
}

export interface AskedCompletion extends Omit<Asked, 'reply'> {
  readonly reply: Promise<ReadToolCompletion>;
  /** Resolves when a part of a call's arguments has come; rejects when the reply ends without one. */
  readonly begun: Promise<void>;
}

/** Asks for chat completions in a case's books. */
export function createCompletions(requests: Requests, deployment: Pick<Deployment, 'url'>) {
  return ({ provider = 'openai', fields, headers, url, model }: CompletionCall = {}): AskedCompletion => {
    const { entry, signal, arrived, ...caller } = requests.enter(model);
    const begun = Promise.withResolvers<void>();
    const body = {
      ...{ model: `${provider}/${caller.model}`, tools: [weatherTool, clockTool] },
      ...{ messages: [{ role: 'user', content: promptCanary }], ...fields },
    };
    const onText = (text: string) => {
      if (hasBegunCall(text)) begun.resolve();
    };
    const startedAt = performance.now();
    const reply = askWithTools({ url: url ?? deployment.url }, body, {
      ...{ signal, onText },
      ...(headers && { headers }),
    });
    reply.then(() => begun.reject(new Error('ended without a call')), begun.reject);
    begun.promise.catch(() => undefined);
    const end = reply.then((read) => inTermsOfChat(read, performance.now() - startedAt));
    end.catch(() => undefined);
    requests.settle(entry, end);
    return { ...caller, reply, begun: begun.promise, arrived: (after) => arrived(end, after) };
  };
}

/** A stream that ends with an error counts as failed. */
const inTermsOfChat = ({ status, headers, error }: ReadToolCompletion, tookMs: number): ChatReply => ({
  ...{ status: error && status === 200 ? 500 : status, headers, tookMs },
  body: { ...error },
});
