import type { ProviderId } from '../../shared/contract.js';
import type { ResponseLimits } from './http-client.js';
import type { Provider } from './provider.js';

// One line per provider. Imported on demand, so that a process loads only the SDKs of the pools it runs.
const registry = {
  openai: async () => (await import('./openai.js')).createOpenAiProvider,
  anthropic: async () => (await import('./anthropic.js')).createAnthropicProvider,
  bedrock: async () => (await import('./bedrock.js')).createBedrockProvider,
  vertexai: async () => (await import('./vertexai.js')).createVertexAiProvider,
};

/** The dependencies of each provider's adapter. */
export type ProviderSettings = {
  [Id in ProviderId]: Parameters<Awaited<ReturnType<(typeof registry)[Id]>>>[0];
};

type Factory<Id extends ProviderId> = (settings: ProviderSettings[Id], limits: ResponseLimits) => Provider;

const factories: { [Id in ProviderId]: () => Promise<Factory<Id>> } = registry;

/** Loads a provider's SDK and builds its adapter. */
export async function loadProvider<Id extends ProviderId>(
  id: Id,
  settings: ProviderSettings[Id],
  limits: ResponseLimits,
): Promise<Provider> {
  const createProvider = await factories[id]();
  return createProvider(settings, limits);
}
