import type { ProviderId } from '../../shared/contracts/contract.js';

/** The environment of a worker whose providers are the simulator; `undefined` removes a variable. */
export function simulatorEnvironment(ids: ProviderId[], url: string): Record<string, string | undefined> {
  return Object.assign({}, ...ids.map((id) => pointAt[id](url)));
}

const credential = 'simulator';
const model = 'sim-echo';

const pointAt: Record<ProviderId, (url: string) => Record<string, string | undefined>> = {
  openai: (url) => ({
    ...{ OPENAI_API_KEY: credential, OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: model },
    // The simulator plays OpenAI itself, also at its own address.
    ...{ OPENAI_WIRE: 'responses', IMAGE_HOSTS: 'images.example.org' },
  }),
  anthropic: (url) => ({
    ...{ ANTHROPIC_API_KEY: credential, ANTHROPIC_BASE_URL: url, ANTHROPIC_MODEL: model },
    IMAGE_HOSTS: 'images.example.org',
  }),
  bedrock: (url) => ({
    AWS_REGION: 'us-east-1',
    AWS_ENDPOINT_URL_BEDROCK_RUNTIME: url,
    BEDROCK_MODEL: model,
    AWS_ACCESS_KEY_ID: credential,
    AWS_SECRET_ACCESS_KEY: credential,
    // The AWS credential chain would use each of these before the keys. Set to empty they also override a .env file.
    AWS_PROFILE: '',
    AWS_SESSION_TOKEN: '',
    // The SDK treats an empty value as set.
    AWS_BEARER_TOKEN_BEDROCK: undefined,
  }),
  vertexai: (url) => ({ GOOGLE_API_KEY: credential, GOOGLE_VERTEX_BASE_URL: url, VERTEXAI_MODEL: model }),
};
