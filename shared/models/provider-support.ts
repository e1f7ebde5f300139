import { z } from 'zod';
import type { ProviderId } from '../contracts/contract.js';
import type { Part } from '../conversation.js';
import { unsupportedImage } from './image-limits.js';
import { fitSchema, type SchemaUse, useOf } from './json-schema.js';
import {
  claudeEffort,
  hints,
  type JsonSchema,
  type ModelParameters,
  modelParametersSchema,
  neutralValues,
  type ParameterName,
} from './model-parameters.js';
import { UnfitSchema } from './schema-bounds.js';

const { maxOutputTokens, temperature, topP, stop, parallelToolCalls } = modelParametersSchema.shape;

/** Their schemas were checked when they were read, and are fitted to the provider. */
const ofTools = { tools: z.unknown(), toolChoice: z.unknown() };
/** It asks for nothing, so no provider ignores it. */
const cacheKey = z.unknown();
const schemaFormat = z.object({ type: z.literal('json_schema') });

/** The parameters of each provider's models, and their values. */
const accepted: Record<ProviderId, Partial<Record<ParameterName, z.ZodType>>> = {
  openai: modelParametersSchema.shape,
  // Its newer models, and so its SDK, have neither temperature nor top_p. A text to stop at has to have more than white
  // space. https://platform.claude.com/docs/en/api/messages
  anthropic: {
    ...{ maxOutputTokens, ...ofTools, parallelToolCalls, cacheKey },
    ...{ format: schemaFormat, reasoningEffort: claudeEffort },
    stop: stop.refine((texts) => texts?.every((text) => text.trim() !== '')),
  },
  // https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InferenceConfiguration.html
  bedrock: {
    ...{ maxOutputTokens, temperature: z.number().max(1), topP, stop },
    ...{ ...ofTools, format: schemaFormat, reasoningEffort: claudeEffort, cacheKey },
  },
  // https://docs.cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference#generationconfig
  vertexai: {
    ...{ maxOutputTokens, temperature, topP, stop, seed: z.int32() },
    ...{ frequencyPenalty: z.number().lt(2), presencePenalty: z.number().lt(2) },
    ...{
      ...ofTools,
      format: z.unknown(),
      reasoningEffort: z.enum(['minimal', 'low', 'medium', 'high']),
      cacheKey,
    },
  },
};

/** A place within a parameter that rules the provider out, and why, without any text of the caller's. */
export interface Unsupported {
  parameter: ParameterName;
  path?: (string | number)[];
  detail: string;
}

/** The first thing, hints aside, that the provider does not take; undefined without one. */
export function findUnsupported(
  provider: ProviderId,
  parameters: ModelParameters = {},
): Unsupported | undefined {
  const parameter = untaken(provider, parameters).find((name) => !isHint(name, parameters));
  if (parameter !== undefined)
    return { parameter, detail: 'is not supported by this provider, or not with this value' };
  const misplaced = parameters.tools?.findIndex(({ name }) => isMisnamed(provider, name)) ?? -1;
  if (misplaced >= 0) return { parameter: 'tools', path: [misplaced, 'name'], detail: misnamed };
  return findUnfitSchema(provider, parameters);
}

interface Declared extends Required<Pick<Unsupported, 'path'>> {
  parameter: 'tools' | 'format';
  schema: JsonSchema;
  use: SchemaUse;
}

const misnamed = 'must begin with a letter or an underscore with this provider';
const isMisnamed = (provider: ProviderId, name: string) =>
  provider === 'vertexai' && !/^[A-Za-z_]/.test(name);

function findUnfitSchema(provider: ProviderId, parameters: ModelParameters): Unsupported | undefined {
  for (const declared of schemasOf(parameters)) {
    const { parameter, path } = declared;
    const { unfit } = fitted(provider, declared);
    if (unfit) return { parameter, path: [...path, ...unfit.path], detail: unfit.detail };
  }
  return undefined;
}

interface Fit {
  readonly moved: readonly string[];
  readonly unfit?: UnfitSchema;
}

/** The result of `fitSchema`, read once for a schema: a request asks several times about several providers. */
const fitted = fitOnce();

function fitOnce(): (provider: ProviderId, declared: Declared) => Fit {
  const fits = new WeakMap<JsonSchema, Map<string, Fit>>();
  return (provider, { schema, use }) => {
    const known = fits.get(schema) ?? new Map<string, Fit>();
    fits.set(schema, known);
    // Bedrock's schemas are Claude's, as Anthropic's are.
    const name = `${provider === 'bedrock' ? 'anthropic' : provider} ${use}`;
    const found = known.get(name) ?? tryToFit(provider, { schema, use });
    known.set(name, found);
    return found;
  };
}

function tryToFit(provider: ProviderId, { schema, use }: Pick<Declared, 'schema' | 'use'>): Fit {
  try {
    return { moved: fitSchema(provider, schema, use).moved };
  } catch (error) {
    if (error instanceof UnfitSchema) return { moved: [], unfit: error };
    throw error;
  }
}

function schemasOf({ tools = [], format }: ModelParameters): Declared[] {
  const declared = tools.map((tool, place): Declared => {
    const { parameters: schema = {} } = tool;
    return { parameter: 'tools', path: [place, 'parameters'], schema, use: useOf(tool) };
  });
  if (format?.type === 'json_schema')
    declared.push({ parameter: 'format', path: ['schema'], schema: format.schema, use: 'format' });
  return declared;
}

/** Why the provider takes no such part of a turn; undefined where it does. No text of the caller's is in it. */
export function whyUnfit(provider: ProviderId, part: Part): string | undefined {
  if (part.type === 'image') return unsupportedImage(provider, part);
  return part.type === 'tool_call' && isMisnamed(provider, part.name) ? misnamed : undefined;
}

/** The hints that the provider does not take, or not with this value; those within a parameter with its name before. */
export function ignoredHints(provider: ProviderId, parameters: ModelParameters): string[] {
  const isStrict = provider === 'vertexai' && parameters.tools?.some(({ strict }) => strict);
  const keywords = schemasOf(parameters).flatMap((declared) =>
    fitted(provider, declared).moved.map((keyword) => `${declared.parameter}.${keyword}`),
  );
  return [
    ...untaken(provider, parameters).filter((name) => isHint(name, parameters)),
    ...(isStrict ? ['tools.strict'] : []),
    ...new Set(keywords),
  ];
}

/** The parameters without the hints that the provider never takes. Schemas are as they were. */
export function parametersFor(provider: ProviderId, parameters: ModelParameters): ModelParameters {
  const ignored = new Set<string>(untaken(provider, parameters).filter((name) => isHint(name, parameters)));
  return Object.fromEntries(Object.entries(parameters).filter(([name]) => !ignored.has(name)));
}

/**
 * Programs that ask for `json_object` ask for JSON in a message as well, because OpenAI demands it. Instructor and
 * others do so with each model. https://platform.openai.com/docs/guides/structured-outputs#json-mode
 */
const isHint = (name: ParameterName, { format }: ModelParameters): boolean =>
  hints.has(name) || (name === 'format' && format?.type === 'json_object');

/** A value that changes nothing is accepted by all providers. */
const untaken = (provider: ProviderId, parameters: ModelParameters): ParameterName[] =>
  parameterNames.filter((name) => {
    const value = parameters[name];
    if (value === undefined || value === neutralValues[name]) return false;
    return accepted[provider][name]?.safeParse(value).success !== true;
  });

const parameterNames = Object.keys(modelParametersSchema.shape) as ParameterName[];
