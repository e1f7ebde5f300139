const openAi = /^(.+\.)?api\.openai\.com$/;
const azure = /\.(openai|services\.ai|cognitiveservices)\.azure\.com$/;

/**
 * Whether OpenAI's models are at this address: at OpenAI, or at the path of Azure that has all of its API.
 * https://learn.microsoft.com/en-us/azure/foundry/openai/api-version-lifecycle
 */
export function isOpenAiHost(baseUrl: string): boolean {
  const { hostname, pathname } = new URL(baseUrl);
  return openAi.test(hostname) || (azure.test(hostname) && /^\/openai\/v1(\/|$)/.test(pathname));
}
