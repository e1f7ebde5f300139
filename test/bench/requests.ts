import { requestTo } from './load-connection.js';
import { isExpected, type Traffic } from './traffic.js';

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
