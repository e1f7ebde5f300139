import { z } from 'zod';
import { providerIds } from '../contracts/contract.js';
import { modelPattern } from '../models/model-names.js';
import {
  choice,
  count,
  httpUrl,
  imageHosts,
  longSecret,
  milliseconds,
  outputLimits,
  providerList,
  providerUrl,
  secret,
  text,
  whole,
} from './variable-types.js';

const pattern = z.string().regex(modelPattern, {
  error: 'must be model names, separated by commas; * matches any text',
});

/** How a pool calls its provider, whose name comes before each of these; the sentences hold for all four. */
const poolFields = {
  MODEL: text.optional().describe('Model for requests without X-LLM-Model.'),
  MODELS: z
    .string()
    .transform((list) => list.split(',').map((name) => name.trim()))
    .pipe(z.array(pattern).max(50, 'must have at most 50 names'))
    .optional()
    .describe(
      'Comma list of the models that callers may name besides the default one, with * for any characters; any plain name when it is not set.',
    ),
  CONCURRENCY: count(10_000).default(100).describe('Jobs at once in each worker process.'),
  TIMEOUT_MS: milliseconds(100)
    .default(600_000)
    .describe('Longest call, or until the first delta of a stream, in milliseconds.'),
  FIRST_TOKEN_TIMEOUT_MS: milliseconds(100)
    .optional()
    .describe(
      'Longest wait for the first sign of life of a stream, in milliseconds; when it is not set, 60000 at OpenAI and Anthropic, and 300000 at Bedrock, Vertex AI and at a base URL of your own, there 60000 where a fallback follows.',
    ),
  IDLE_TIMEOUT_MS: milliseconds(100)
    .optional()
    .describe(
      'Longest silence within a stream, in milliseconds; before the first delta <PROVIDER>_FIRST_TOKEN_TIMEOUT_MS, if that is longer. When it is not set, 300000 at OpenAI and Anthropic, and 600000 at Bedrock, Vertex AI and at a base URL of your own.',
    ),
  FALLBACK_AFTER_MS: milliseconds(100)
    .optional()
    .describe(
      'How long a stream may take to begin, with thinking or with text, before its fallback is asked instead, in milliseconds; never when it is not set.',
    ),
  MAX_OUTPUT_TOKENS: outputLimits
    .optional()
    .describe(
      'Longest reply with its thinking, in tokens, for which a request can ask: a number, or a comma list of numbers for models, such as 32000,nova-*=8192; the first name that fits counts. When it is not set, as long as the request or the provider says; where the provider demands a number, 32000 at Anthropic and 16000 at Bedrock.',
    ),
  THINKING: choice(['default', 'shown'])
    .default('default')
    .describe(
      'Whether models are asked for their thinking in words (shown) in requests of APIs that show it; no API does so yet.',
    ),
};

type PoolFields = typeof poolFields;
type PoolVariables<Prefix extends string> = {
  [Name in keyof PoolFields as `${Prefix}_${Name}`]: PoolFields[Name];
};

const poolVariables = <Prefix extends string>(prefix: Prefix): PoolVariables<Prefix> =>
  Object.fromEntries(
    Object.entries(poolFields).map(([name, field]) => [`${prefix}_${name}`, field]),
  ) as PoolVariables<Prefix>;

/** The workers: their pools, and their calls of each provider. */
export const workerVariables = {
  WORKER_PROVIDERS: z
    .string()
    .default(providerIds.join(','))
    .transform((list) => [...new Set(list.split(',').map((name) => name.trim()))])
    .pipe(providerList)
    .describe('Comma list of the pools this worker process runs.'),
  WORKER_LOCK_MS: milliseconds(1000)
    .default(15_000)
    .describe(
      "How long a job's lock lasts without being renewed before the job counts as stalled, in milliseconds.",
    ),
  WORKER_STALLED_CHECK_MS: milliseconds(100)
    .default(2500)
    .describe('How often stalled jobs are looked for, in milliseconds.'),
  BREAKER_RESET_MS: milliseconds(100)
    .default(10_000)
    .describe('How long a breaker stays open before it probes, in milliseconds.'),
  PROVIDER_MAX_RESPONSE_BYTES: whole(65_536, 268_435_456)
    .default(16_777_216)
    .describe(
      'Largest response of a provider that is read, in bytes, or event of a stream; a call with a larger one fails with provider_error. A pool may hold one per job in memory.',
    ),
  HTTPS_PROXY: secret(
    httpUrl,
    'Proxy for the calls of providers at https addresses, such as http://proxy.example.org:3128; none when it is not set.',
  ),
  NO_PROXY: text
    .optional()
    .describe(
      'Comma list of the hosts, such as example.org or .example.org, that are called without HTTPS_PROXY; addresses of this machine always are.',
    ),
  PROVIDER_USER_KEY: secret(
    longSecret(16),
    'Key of the hash by which OpenAI and Anthropic know the user who asks, so that misuse is laid to that user and not to the account; without it they get none.',
  ),
  IMAGE_HOSTS: imageHosts
    .default(['none'])
    .describe(
      'Where a server at OPENAI_BASE_URL or ANTHROPIC_BASE_URL may be asked to fetch images from, whose addresses callers choose: none, https (any public host), or a comma list of hosts (images.example.org, *.example.org).',
    ),

  OPENAI_API_KEY: secret(z.string().min(1), 'Credential of OpenAI.'),
  OPENAI_BASE_URL: providerUrl.optional().describe("OpenAI's address, as its SDK names it."),
  OPENAI_WIRE: choice(['auto', 'responses', 'chat'])
    .default('auto')
    .describe(
      "OpenAI's API to speak: Responses (responses), chat completions (chat), or (auto) the first at OpenAI and at Azure, and the second at any other OPENAI_BASE_URL.",
    ),
  ...poolVariables('OPENAI'),

  ANTHROPIC_API_KEY: secret(z.string().min(1), 'Credential of Anthropic.'),
  ANTHROPIC_BASE_URL: providerUrl.optional().describe("Anthropic's address, as its SDK names it."),
  ANTHROPIC_PROMPT_CACHE: choice(['off', 'auto', '1h'])
    .optional()
    .describe(
      'Whether Anthropic is asked to cache the beginning of prompts with tools or earlier turns: for five minutes (auto), for an hour (1h), or not (off): reading it from there costs less, and writing it costs more. When it is not set, auto, but off at an ANTHROPIC_BASE_URL of another host.',
    ),
  ...poolVariables('ANTHROPIC'),

  AWS_REGION: text
    .optional()
    .describe(
      'Region of Bedrock; credentials come from the AWS chain (keys, profile, role) or, as a key of Bedrock alone, from AWS_BEARER_TOKEN_BEDROCK.',
    ),
  AWS_ENDPOINT_URL_BEDROCK_RUNTIME: providerUrl
    .optional()
    .describe("Bedrock's address, as the AWS SDK names it."),
  BEDROCK_PROMPT_CACHE: choice(['off', 'auto'])
    .default('auto')
    .describe(
      'Whether Claude and Nova at Bedrock are asked to cache the beginning of prompts with tools or earlier turns (auto) or not (off).',
    ),
  ...poolVariables('BEDROCK'),

  GOOGLE_CLOUD_PROJECT: text
    .optional()
    .describe('Project of Vertex AI, used with application default credentials.'),
  GOOGLE_CLOUD_LOCATION: text
    .optional()
    .describe('Location of Vertex AI, used with GOOGLE_CLOUD_PROJECT; global when it is not set.'),
  GOOGLE_API_KEY: secret(z.string().min(1), 'Credential of Vertex AI in express mode, instead of a project.'),
  GOOGLE_VERTEX_BASE_URL: providerUrl.optional().describe("Vertex AI's address, as its SDK names it."),
  ...poolVariables('VERTEXAI'),
};
