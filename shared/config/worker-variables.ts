import { z } from 'zod';
import { providerIds } from '../contract.js';
import { modelPattern } from '../model-names.js';
import { count, milliseconds, providerList, providerUrl, secret, text, whole } from './variable-types.js';

const pattern = z.string().regex(modelPattern, {
  error: 'must be a comma list of model names, in which * stands for any characters',
});

const perProvider = {
  concurrency: () => count(10_000).default(20),
  timeoutMs: () => milliseconds(100).default(45_000),
  firstTokenTimeoutMs: () => milliseconds(100).default(40_000),
  idleTimeoutMs: () => milliseconds(100).default(20_000),
  fallbackAfterMs: () => milliseconds(100).optional(),
  model: () => text.optional(),
  models: () =>
    z
      .string()
      .transform((list) => list.split(',').map((name) => name.trim()))
      .pipe(z.array(pattern).max(50, 'must have at most 50 names'))
      .optional(),
  maxOutputTokens: () => count(1_000_000).default(4096),
};

/** What workers run: their pools, and how they call each provider. */
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
      'Largest response of a provider that is read, in bytes; a call with a larger one fails with provider_error. A pool may hold one per job in memory.',
    ),

  OPENAI_API_KEY: secret(z.string().min(1), 'Credential of OpenAI.'),
  OPENAI_BASE_URL: providerUrl.optional().describe("OpenAI's address, as its SDK names it."),
  OPENAI_MODEL: perProvider.model().describe('Model for requests without X-LLM-Model.'),
  OPENAI_MODELS: perProvider
    .models()
    .describe(
      'Comma list of the models of OpenAI that callers may name besides OPENAI_MODEL, with * for any characters; any plain name when it is not set.',
    ),
  OPENAI_CONCURRENCY: perProvider.concurrency().describe('Concurrent OpenAI jobs per worker process.'),
  OPENAI_TIMEOUT_MS: perProvider
    .timeoutMs()
    .describe('Longest call to OpenAI, or until the first delta of a stream, in milliseconds.'),
  OPENAI_FIRST_TOKEN_TIMEOUT_MS: perProvider
    .firstTokenTimeoutMs()
    .describe('Longest wait for the first delta of a stream of OpenAI, in milliseconds.'),
  OPENAI_IDLE_TIMEOUT_MS: perProvider
    .idleTimeoutMs()
    .describe('Longest silence of OpenAI within a stream, in milliseconds.'),
  OPENAI_FALLBACK_AFTER_MS: perProvider
    .fallbackAfterMs()
    .describe(
      'How long a stream of OpenAI may take to its first delta before its fallback is asked instead, in milliseconds; never when it is not set.',
    ),
  OPENAI_MAX_OUTPUT_TOKENS: perProvider.maxOutputTokens().describe('Longest reply of OpenAI, in tokens.'),

  ANTHROPIC_API_KEY: secret(z.string().min(1), 'Credential of Anthropic.'),
  ANTHROPIC_BASE_URL: providerUrl.optional().describe("Anthropic's address, as its SDK names it."),
  ANTHROPIC_MODEL: perProvider.model().describe('Model for requests without X-LLM-Model.'),
  ANTHROPIC_MODELS: perProvider
    .models()
    .describe(
      'Comma list of the models of Anthropic that callers may name besides ANTHROPIC_MODEL, with * for any characters; any plain name when it is not set.',
    ),
  ANTHROPIC_CONCURRENCY: perProvider.concurrency().describe('Concurrent Anthropic jobs per worker process.'),
  ANTHROPIC_TIMEOUT_MS: perProvider
    .timeoutMs()
    .describe('Longest call to Anthropic, or until the first delta of a stream, in milliseconds.'),
  ANTHROPIC_FIRST_TOKEN_TIMEOUT_MS: perProvider
    .firstTokenTimeoutMs()
    .describe('Longest wait for the first delta of a stream of Anthropic, in milliseconds.'),
  ANTHROPIC_IDLE_TIMEOUT_MS: perProvider
    .idleTimeoutMs()
    .describe('Longest silence of Anthropic within a stream, in milliseconds.'),
  ANTHROPIC_FALLBACK_AFTER_MS: perProvider
    .fallbackAfterMs()
    .describe(
      'How long a stream of Anthropic may take to its first delta before its fallback is asked instead, in milliseconds; never when it is not set.',
    ),
  ANTHROPIC_MAX_OUTPUT_TOKENS: perProvider
    .maxOutputTokens()
    .describe('Longest reply of Anthropic, in tokens.'),

  AWS_REGION: text
    .optional()
    .describe('Region of Bedrock; credentials come from the AWS chain (keys, profile, role).'),
  AWS_ENDPOINT_URL_BEDROCK_RUNTIME: providerUrl
    .optional()
    .describe("Bedrock's address, as the AWS SDK names it."),
  BEDROCK_MODEL: perProvider.model().describe('Model for requests without X-LLM-Model.'),
  BEDROCK_MODELS: perProvider
    .models()
    .describe(
      'Comma list of the models of Bedrock that callers may name besides BEDROCK_MODEL, with * for any characters; any plain name when it is not set.',
    ),
  BEDROCK_CONCURRENCY: perProvider.concurrency().describe('Concurrent Bedrock jobs per worker process.'),
  BEDROCK_TIMEOUT_MS: perProvider
    .timeoutMs()
    .describe('Longest call to Bedrock, or until the first delta of a stream, in milliseconds.'),
  BEDROCK_FIRST_TOKEN_TIMEOUT_MS: perProvider
    .firstTokenTimeoutMs()
    .describe('Longest wait for the first delta of a stream of Bedrock, in milliseconds.'),
  BEDROCK_IDLE_TIMEOUT_MS: perProvider
    .idleTimeoutMs()
    .describe('Longest silence of Bedrock within a stream, in milliseconds.'),
  BEDROCK_FALLBACK_AFTER_MS: perProvider
    .fallbackAfterMs()
    .describe(
      'How long a stream of Bedrock may take to its first delta before its fallback is asked instead, in milliseconds; never when it is not set.',
    ),
  BEDROCK_MAX_OUTPUT_TOKENS: perProvider.maxOutputTokens().describe('Longest reply of Bedrock, in tokens.'),

  GOOGLE_CLOUD_PROJECT: text
    .optional()
    .describe('Project of Vertex AI, used with application default credentials.'),
  GOOGLE_CLOUD_LOCATION: text.optional().describe('Location of Vertex AI, used with GOOGLE_CLOUD_PROJECT.'),
  GOOGLE_API_KEY: secret(z.string().min(1), 'Credential of Vertex AI in express mode, instead of a project.'),
  GOOGLE_VERTEX_BASE_URL: providerUrl.optional().describe("Vertex AI's address, as its SDK names it."),
  VERTEXAI_MODEL: perProvider.model().describe('Model for requests without X-LLM-Model.'),
  VERTEXAI_MODELS: perProvider
    .models()
    .describe(
      'Comma list of the models of Vertex AI that callers may name besides VERTEXAI_MODEL, with * for any characters; any plain name when it is not set.',
    ),
  VERTEXAI_CONCURRENCY: perProvider.concurrency().describe('Concurrent Vertex AI jobs per worker process.'),
  VERTEXAI_TIMEOUT_MS: perProvider
    .timeoutMs()
    .describe('Longest call to Vertex AI, or until the first delta of a stream, in milliseconds.'),
  VERTEXAI_FIRST_TOKEN_TIMEOUT_MS: perProvider
    .firstTokenTimeoutMs()
    .describe('Longest wait for the first delta of a stream of Vertex AI, in milliseconds.'),
  VERTEXAI_IDLE_TIMEOUT_MS: perProvider
    .idleTimeoutMs()
    .describe('Longest silence of Vertex AI within a stream, in milliseconds.'),
  VERTEXAI_FALLBACK_AFTER_MS: perProvider
    .fallbackAfterMs()
    .describe(
      'How long a stream of Vertex AI may take to its first delta before its fallback is asked instead, in milliseconds; never when it is not set.',
    ),
  VERTEXAI_MAX_OUTPUT_TOKENS: perProvider
    .maxOutputTokens()
    .describe('Longest reply of Vertex AI, in tokens.'),
};
