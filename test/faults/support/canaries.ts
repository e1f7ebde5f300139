import { promptCanary, providerKeys } from '../../support/canaries.js';
import { blogToken, type ChatReply, chatToken, password } from '../../support/deployment.js';

/** In how many problems or lines of the logs a prompt or a secret is to be seen. */
export function countLeaks(logs: string, answers: readonly ChatReply[]): number {
  const problems = answers.filter(({ status }) => status !== 200).map(({ body }) => JSON.stringify(body));
  const secrets = [promptCanary, ...Object.values(providerKeys), password, blogToken, chatToken];
  return [...logs.split('\n'), ...problems].filter((text) => secrets.some((secret) => text.includes(secret)))
    .length;
}
