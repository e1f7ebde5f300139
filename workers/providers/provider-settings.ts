import { type Config, namesSet } from '../../shared/config/config.js';
import { isSimulated } from '../../shared/config/provider-credentials.js';
import type { ProviderId } from '../../shared/contracts/contract.js';
import { HttpClient } from './http/http-client.js';
import type { Provider } from './provider.js';

// One line per provider. Imported on demand, so that a process loads only the SDKs of the pools it runs.
const registry = {
  openai: async () => (await import('./openai/openai.js')).createOpenAiProvider,
  anthropic: async () => (await import('./anthropic/anthropic.js')).createAnthropicProvider,
  bedrock: async () => (await import('./bedrock/bedrock.js')).createBedrockProvider,
  vertexai: async () => (await import('./vertexai/vertexai.js')).createVertexAiProvider,
};

/** Credentials, address and options of each provider's adapter. */
export type ProviderAccess = {
  [Id in ProviderId]: Parameters<Awaited<ReturnType<(typeof registry)[Id]>>>[0];
};

type Factory<Id extends ProviderId> = (access: ProviderAccess[Id], http: HttpClient) => Provider;

/** Loads a provider's SDK and builds its adapter, which closes the client with itself. */
export async function loadProvider<Id extends ProviderId>(
  id: Id,
  access: ProviderAccess[Id],
  http: HttpClient,
): Promise<Provider> {
  const factories: { [Each in ProviderId]: () => Promise<Factory<Each>> } = registry;
  return (await factories[id]())(access, http);
}

/** Loads the adapter of a provider that has its credentials in the configuration, or is played by the simulator. */
export function openProvider<Id extends ProviderId>(id: Id, config: Config): Promise<Provider> {
  const { HTTPS_PROXY: proxy, NO_PROXY: noProxy, PROVIDER_MAX_RESPONSE_BYTES: maxBytes } = config;
  const accessOf = isSimulated(namesSet(config), id) ? simulatedAccess : realAccess;
  return loadProvider(id, accessOf[id](config), new HttpClient(maxBytes, { proxy, noProxy }));
}

const realAccess: { [Id in ProviderId]: (config: Config) => ProviderAccess[Id] } = {
  openai: (config) => ({
    apiKey: present(config.OPENAI_API_KEY),
    baseUrl: config.OPENAI_BASE_URL,
    wire: config.OPENAI_WIRE,
  }),
  anthropic: (config) => {
    const { ANTHROPIC_BASE_URL: baseUrl, ANTHROPIC_PROMPT_CACHE: own } = config;
    const isForeign = isElsewhere(baseUrl, 'anthropic.com');
    const promptCache = own ?? (isForeign ? 'off' : 'auto');
    return { apiKey: present(config.ANTHROPIC_API_KEY), baseUrl, isForeign, promptCache };
  },
  bedrock: (config) => ({
    region: present(config.AWS_REGION),
    endpoint: config.AWS_ENDPOINT_URL_BEDROCK_RUNTIME,
    promptCache: config.BEDROCK_PROMPT_CACHE,
  }),
  vertexai: (config) => ({
    ...(config.GOOGLE_API_KEY
      ? { apiKey: config.GOOGLE_API_KEY }
      : { project: present(config.GOOGLE_CLOUD_PROJECT), location: config.GOOGLE_CLOUD_LOCATION }),
    baseUrl: config.GOOGLE_VERTEX_BASE_URL,
  }),
};

/** Whether a base URL has another host than those of the domain. */
const isElsewhere = (url: string | undefined, domain: string): boolean =>
  url !== undefined && !`.${new URL(url).hostname}`.endsWith(`.${domain}`);

/** The simulator wants to see some credential. */
const credential = 'simulator';
const simulatorUrl = ({ SIMULATOR_URL }: Config): string => present(SIMULATOR_URL).replace(/\/+$/, '');

const simulatedAccess: typeof realAccess = {
  openai: (config) => ({
    apiKey: credential,
    baseUrl: `${simulatorUrl(config)}/v1`,
    wire: config.OPENAI_WIRE === 'auto' ? 'responses' : config.OPENAI_WIRE,
  }),
  anthropic: (config) => ({
    apiKey: credential,
    baseUrl: simulatorUrl(config),
    promptCache: config.ANTHROPIC_PROMPT_CACHE ?? 'auto',
  }),
  bedrock: (config) => ({
    region: 'us-east-1',
    endpoint: simulatorUrl(config),
    credentials: { accessKeyId: credential, secretAccessKey: credential },
    promptCache: config.BEDROCK_PROMPT_CACHE,
  }),
  vertexai: (config) => ({ apiKey: credential, baseUrl: simulatorUrl(config) }),
};

function present(value: string | undefined): string {
  if (value === undefined) throw new TypeError('a variable was not checked before');
  return value;
}
