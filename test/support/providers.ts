import type { ProviderId } from '../../shared/contract.js';
import type { Provider } from '../../workers/provider.js';
import { loadProvider, type ProviderSettings } from '../../workers/providers/registry.js';

/** One way to set up a provider's adapter. */
export interface ProviderSetup {
  name: string;
  id: ProviderId;
  /** Builds the adapter for a server that speaks the provider's language, with made-up credentials. */
  load: (url: string) => Promise<Provider>;
}

type AuthClient = NonNullable<Extract<ProviderSettings['vertexai'], { project: string }>['authClient']>;

// All that the SDK asks of Google's authentication library.
const authClient = {
  getRequestHeaders: async () => new Headers({ authorization: 'Bearer test-token' }),
} as unknown as AuthClient;

/** Every adapter in every way it can be set up. */
export const providerSetups: readonly ProviderSetup[] = [
  {
    name: 'openai',
    id: 'openai',
    load: (url) => loadProvider('openai', { apiKey: 'test-key', baseUrl: `${url}/v1` }),
  },
  {
    name: 'anthropic',
    id: 'anthropic',
    load: (url) => loadProvider('anthropic', { apiKey: 'test-key', baseUrl: url }),
  },
  {
    name: 'bedrock',
    id: 'bedrock',
    load: (url) =>
      loadProvider('bedrock', {
        region: 'us-east-1',
        endpoint: url,
        maxSockets: 20,
        credentials: { accessKeyId: 'test-id', secretAccessKey: 'test-key' },
      }),
  },
  {
    name: 'vertexai with an API key',
    id: 'vertexai',
    load: (url) => loadProvider('vertexai', { apiKey: 'test-key', baseUrl: url }),
  },
  {
    name: 'vertexai in a project',
    id: 'vertexai',
    load: (url) =>
      loadProvider('vertexai', {
        project: 'test-project',
        location: 'us-central1',
        authClient,
        baseUrl: url,
      }),
  },
];
