import type { Config } from '../shared/config.js';
import type { ProviderId } from '../shared/contract.js';
import type { Provider } from './provider.js';
import { loadProvider, type ProviderSettings } from './providers/registry.js';

/** Loads the adapter of a provider that has its credentials in the configuration. */
export function openProvider<Id extends ProviderId>(id: Id, config: Config): Promise<Provider> {
  return loadProvider(id, settingsOf[id](config));
}

const settingsOf: { [Id in ProviderId]: (config: Config) => ProviderSettings[Id] } = {
  openai: (config) => ({
    apiKey: present(config.OPENAI_API_KEY),
    ...(config.OPENAI_BASE_URL && { baseUrl: config.OPENAI_BASE_URL }),
  }),
  anthropic: (config) => ({
    apiKey: present(config.ANTHROPIC_API_KEY),
    ...(config.ANTHROPIC_BASE_URL && { baseUrl: config.ANTHROPIC_BASE_URL }),
  }),
  bedrock: (config) => ({
    region: present(config.AWS_REGION),
    maxSockets: config.BEDROCK_CONCURRENCY,
    ...(config.AWS_ENDPOINT_URL_BEDROCK_RUNTIME && { endpoint: config.AWS_ENDPOINT_URL_BEDROCK_RUNTIME }),
  }),
  vertexai: (config) => ({
    ...(config.GOOGLE_API_KEY
      ? { apiKey: config.GOOGLE_API_KEY }
      : { project: present(config.GOOGLE_CLOUD_PROJECT), location: present(config.GOOGLE_CLOUD_LOCATION) }),
    ...(config.GOOGLE_VERTEX_BASE_URL && { baseUrl: config.GOOGLE_VERTEX_BASE_URL }),
  }),
};

function present(value: string | undefined): string {
  if (value === undefined) throw new TypeError('credentials were not checked before');
  return value;
}
