import type { ProviderId } from '../../shared/contract.js';
import type { ResponseLimits } from '../../workers/providers/http-client.js';
import type { Provider } from '../../workers/providers/provider.js';
import { loadProvider, type ProviderSettings } from '../../workers/providers/registry.js';

/** One way to set up a provider's adapter. */
export interface ProviderSetup {
  name: string;
  id: ProviderId;
  /** Builds the adapter for a server with the provider's wire format, with made-up credentials. */
  load: (url: string, limits?: ResponseLimits) => Promise<Provider>;
}

const usualLimits: ResponseLimits = { maxResponseBytes: 16_777_216 };

type AuthClient = NonNullable<Extract<ProviderSettings['vertexai'], { project: string }>['authClient']>;

// All that the SDK uses of Google's authentication library.
const authClient = {
  getRequestHeaders: async () => new Headers({ authorization: 'Bearer test-token' }),
} as unknown as AuthClient;

/** Every adapter in every setup. */
export const providerSetups: readonly ProviderSetup[] = [
  {
    name: 'openai',
    id: 'openai',
    load: (url, limits = usualLimits) =>
      loadProvider('openai', { apiKey: 'test-key', baseUrl: `${url}/v1` }, limits),
  },
  {
    name: 'anthropic',
    id: 'anthropic',
    load: (url, limits = usualLimits) =>
      loadProvider('anthropic', { apiKey: 'test-key', baseUrl: url }, limits),
  },
  {
    name: 'bedrock',
    id: 'bedrock',
    load: (url, limits = usualLimits) =>
      loadProvider(
        'bedrock',
        {
          region: 'us-east-1',
          endpoint: url,
          credentials: { accessKeyId: 'test-id', secretAccessKey: 'test-key' },
        },
        limits,
      ),
  },
  {
    name: 'vertexai with an API key',
    id: 'vertexai',
    load: (url, limits = usualLimits) =>
      loadProvider('vertexai', { apiKey: 'test-key', baseUrl: url }, limits),
  },
  {
    name: 'vertexai in a project',
    id: 'vertexai',
    load: (url, limits = usualLimits) =>
      loadProvider(
        'vertexai',
        {
          project: 'test-project',
          location: 'us-central1',
          authClient,
          baseUrl: url,
        },
        limits,
      ),
  },
];
