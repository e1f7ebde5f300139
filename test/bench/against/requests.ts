import type { LoadResult } from '../load.js';
import { requestTo } from '../load-connection.js';
import { errorCount } from '../results.js';
import { isExpected, type Traffic } from '../traffic.js';
import type { Part, Usage } from '../usage.js';
import type { Measured } from './statistics.js';

/** Sends the first of these requests; says what is wrong with the answer, undefined when it is as expected. */
export async function whyNotAnswered(traffic: Traffic, signal: AbortSignal): Promise<string | undefined> {
  const { path = '/', etag } = traffic.targets[0] ?? {};
  const { headers, body } = requestTo(path, etag, traffic);
  const init = { method: traffic.method, headers: headers as Record<string, string>, signal };
  const response = await fetch(traffic.origin + path, {
    ...init,
    ...(typeof body === 'string' && { body }),
  });
  const text = await response.text();
  if (response.status !== traffic.expected.status) return `answers ${response.status}`;
  return isExpected(text, traffic.expected.body) ? undefined : 'answers in another shape';
}

/** What an operator pays for: the rest plays the client and the provider. */
const productParts: readonly Part[] = ['api', 'worker', 'store'];

/** The figures of one run that are compared. */
export function figuresOf({ load, usage }: { load: LoadResult; usage: Usage }): Measured {
  const cpuSeconds = productParts.reduce((sum, part) => sum + (usage.parts[part]?.cpuSeconds ?? 0), 0);
  const { p50Ms, p99Ms } = load;
  return {
    perSecond: load.answers / load.seconds,
    ...(p50Ms !== undefined && { p50Ms }),
    ...(p99Ms !== undefined && { p99Ms }),
    ...(load.answers > 0 && cpuSeconds > 0 && { cpuMs: (cpuSeconds * 1000) / load.answers }),
    errors: errorCount(load.errors),
    othersBusy: usage.othersBusy,
  };
}
