import type { ProviderId } from '../../shared/contracts/contract.js';
import { HttpClient } from '../../workers/providers/http/http-client.js';
import type { Provider } from '../../workers/providers/provider.js';
import { loadProvider, type ProviderAccess } from '../../workers/providers/provider-settings.js';

/** One way to set up a provider's adapter. */
export interface ProviderSetup {
  name: string;
  id: ProviderId;
  /** Builds the adapter for a server with the provider's wire format, with made-up credentials. */
  load: (url: string, maxResponseBytes?: number) => Promise<Provider>;
}

const usualMaxBytes = 16_777_216;

type AuthClient = NonNullable<Extract<ProviderAccess['vertexai'], { project: string }>['authClient']>;

// All that the SDK uses of Google's authentication library.
const authClient = {
  getRequestHeaders: async () => new Headers({ authorization: 'Bearer test-token' }),
} as unknown as AuthClient;

const setup = <Id extends ProviderId>(
  name: string,
  id: Id,
  settingsOf: (url: string) => ProviderAccess[Id],
): ProviderSetup => ({
  name,
  id,
  load: (url, maxResponseBytes = usualMaxBytes) =>
    loadProvider(id, settingsOf(url), new HttpClient(maxResponseBytes)),
});

const apiKey = 'test-key';

/** Every adapter in every setup. */
export const providerSetups: readonly ProviderSetup[] = [
  setup('openai by chat completions', 'openai', (url) => ({ apiKey, baseUrl: `${url}/v1`, wire: 'chat' })),
  setup('openai by responses', 'openai', (url) => ({ apiKey, baseUrl: `${url}/v1`, wire: 'responses' })),
  setup('anthropic', 'anthropic', (baseUrl) => ({ apiKey, baseUrl })),
  setup('bedrock', 'bedrock', (endpoint) => ({
    ...{ region: 'us-east-1', endpoint },
    credentials: { accessKeyId: 'test-id', secretAccessKey: 'test-key' },
  })),
  setup('vertexai with an API key', 'vertexai', (baseUrl) => ({ apiKey, baseUrl })),
  setup('vertexai in a project', 'vertexai', (baseUrl) => ({ project: 'test-project', authClient, baseUrl })),
];

/** How a reply may be asked for. */
export const replyModes = [
  { mode: 'whole', stream: false },
  { mode: 'streamed', stream: true },
];
