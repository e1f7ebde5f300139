import { z } from 'zod';
import type { ExtraContent } from '../contracts/completion-contract.js';
import type { ProviderId } from '../contracts/contract.js';
import { claudeEffort, modelParametersSchema, type ParameterName } from './model-parameters.js';
import { claude, type Dialect, gemini } from './schema-dialects.js';

/** The habits of one provider's API and models, as far as more than its own adapter has to know them. */
export interface ProviderModels {
  /** Its name for people. */
  readonly title: string;
  /** Its name in traces, as OpenTelemetry gives it: `gen_ai.provider.name`. */
  readonly traceName: string;
  /** The parameters that it takes, and their values. */
  readonly parameters: Partial<Record<ParameterName, z.ZodType>>;
  /** How it takes JSON Schemas; absent means as they are. */
  readonly schemas?: Dialect;
  /** A form that names of tools must have besides that of all providers, and how an error says it. */
  readonly toolName?: { readonly pattern: RegExp; readonly rule: string };
  readonly images: ImageLimits;
  /** Whether its requests have a key by which it finds what it has cached; absent means not. */
  readonly hasCacheKey?: true;
  /** How turns of user and assistant alternate; absent means that they may come in any order. */
  readonly alternation?: Alternation;
  readonly signatures: Signatures;
  /** Whether system texts stay apart and marks of the cache stand behind parts, as in Anthropic's API. */
  readonly takesMarks?: true;
  /** Parameters that not all of its models take. */
  readonly ofSomeModels?: OfSomeModels;
}

/** Parameters that are sent to models of some names alone. */
interface OfSomeModels {
  readonly parameters: readonly ParameterName[];
  readonly models: RegExp;
}

/** The images that a provider takes. */
interface ImageLimits {
  /** The size of one image. */
  readonly maxBytes: number;
  readonly takesGif: boolean;
  /** Whether it fetches images itself: this server fetches none. */
  readonly fetches: boolean;
}

/** The rules of a provider whose turns of user and assistant alternate. */
interface Alternation {
  /** Whether its own servers take system texts behind a turn of the user. */
  readonly keepsSystem: boolean;
  /** Whether a reply with thinking right behind another one needs a turn of the user between them. */
  readonly partsReplies: boolean;
}

/** How blocks for the model alone that stand before a call travel with it to clients. */
interface Signatures {
  /** The names of two fields of `extra_content`: the provider's, and in it that of the blocks. */
  readonly path: readonly [keyof ExtraContent, string];
  /** The field of a call's own block whose text travels alone; undefined means that all blocks do, as an array. */
  readonly bareField: string | undefined;
}

/** 5 MiB as base64. */
const small = 3.75 * 1024 * 1024;
const large = 7 * 1024 * 1024;

const { topK, thinking, ...ofOpenAi } = modelParametersSchema.shape;
const { maxOutputTokens, temperature, topP, stop, parallelToolCalls } = ofOpenAi;

/** Every provider takes these. The schemas of tools were checked when they were read, and are fitted to it. */
const common = {
  maxOutputTokens,
  tools: z.unknown(),
  toolChoice: z.unknown(),
  /** It asks for nothing, so no provider ignores it. */
  cacheKey: z.unknown(),
};
const schemaFormat = z.object({ type: z.literal('json_schema') });

/** One row for each provider. */
export const providerModels: Record<ProviderId, ProviderModels> = {
  openai: {
    title: 'OpenAI',
    traceName: 'openai',
    parameters: ofOpenAi,
    images: { maxBytes: large, takesGif: true, fetches: true },
    hasCacheKey: true,
    signatures: { path: ['openai', 'reasoning'], bareField: undefined },
  },
  anthropic: {
    title: 'Anthropic',
    traceName: 'anthropic',
    // Its newer models, and so its SDK, have neither temperature nor top_p. A text to stop at has to have more than
    // white space. https://platform.claude.com/docs/en/api/messages
    parameters: {
      ...common,
      stop: stop.refine((texts) => texts?.every((text) => text.trim() !== '')),
      reasoningEffort: claudeEffort,
      parallelToolCalls,
      format: schemaFormat,
    },
    schemas: claude,
    // https://platform.claude.com/docs/en/build-with-claude/vision
    images: { maxBytes: small, takesGif: true, fetches: true },
    alternation: { keepsSystem: true, partsReplies: true },
    signatures: { path: ['anthropic', 'signed_thinking'], bareField: undefined },
  },
  bedrock: {
    title: 'Amazon Bedrock',
    traceName: 'aws.bedrock',
    // https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InferenceConfiguration.html
    parameters: {
      ...common,
      temperature: z.number().max(1),
      topP,
      topK,
      thinking,
      stop,
      reasoningEffort: claudeEffort,
      format: schemaFormat,
    },
    schemas: claude,
    // https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ImageBlock.html
    images: { maxBytes: small, takesGif: true, fetches: false },
    alternation: { keepsSystem: false, partsReplies: true },
    signatures: { path: ['bedrock', 'signed_thinking'], bareField: undefined },
    takesMarks: true,
    // Also in the names of its profiles.
    ofSomeModels: { parameters: ['topK', 'thinking'], models: /\bclaude\b/i },
  },
  vertexai: {
    title: 'Google Vertex AI',
    traceName: 'gcp.vertex_ai',
    // https://docs.cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference#generationconfig
    parameters: {
      ...common,
      temperature,
      topP,
      topK,
      stop,
      seed: z.int32(),
      frequencyPenalty: z.number().lt(2),
      presencePenalty: z.number().lt(2),
      reasoningEffort: z.enum(['minimal', 'low', 'medium', 'high']),
      format: z.unknown(),
    },
    schemas: gemini,
    toolName: { pattern: /^[A-Za-z_]/, rule: 'must begin with a letter or an underscore with this provider' },
    // https://docs.cloud.google.com/vertex-ai/generative-ai/docs/multimodal/image-understanding
    images: { maxBytes: large, takesGif: false, fetches: false },
    alternation: { keepsSystem: false, partsReplies: false },
    signatures: { path: ['google', 'thought_signature'], bareField: 'thoughtSignature' },
  },
};
