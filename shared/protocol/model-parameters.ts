import { z } from 'zod';
import type { ProviderId } from '../contract.js';

/** Longer ones are of no use, and the text stays in the job's record after its conversation was dropped from there. */
const maxStopLength = 1000;

const stopSequence = z
  .string()
  .min(1)
  .max(maxStopLength)
  .refine((text) => text.isWellFormed(), 'is not well-formed Unicode');

/** The form of the reply; absent fields are the provider's own defaults. Ranges as in OpenAI's chat completions. */
export const modelParametersSchema = z.object({
  /** Upper bound of the reply, in the provider's tokens; never above the pool's own. */
  maxOutputTokens: z.int().positive().optional(),
  temperature: z.number().min(0).max(2).optional(),
  topP: z.number().min(0).max(1).optional(),
  /** The reply ends before the first of these texts. */
  stop: z.array(stopSequence).min(1).max(4).optional(),
  seed: z.int().optional(),
  frequencyPenalty: z.number().min(-2).max(2).optional(),
  presencePenalty: z.number().min(-2).max(2).optional(),
  reasoningEffort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']).optional(),
});

export type ModelParameters = z.output<typeof modelParametersSchema>;

export type ParameterName = keyof ModelParameters;

const { maxOutputTokens, temperature, topP, stop } = modelParametersSchema.shape;

/** The parameters of each provider's models, and their values. */
const accepted: Record<ProviderId, Partial<Record<ParameterName, z.ZodType>>> = {
  openai: modelParametersSchema.shape,
  // Its newer models, and so its SDK, have neither temperature nor top_p. A text to stop at has to have more than white
  // space. https://platform.claude.com/docs/en/api/messages
  anthropic: {
    maxOutputTokens,
    stop: stop.refine((texts) => texts?.every((text) => text.trim() !== '')),
  },
  // https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InferenceConfiguration.html
  bedrock: { maxOutputTokens, temperature: z.number().max(1), topP, stop },
  // https://docs.cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference#generationconfig
  vertexai: {
    ...{ maxOutputTokens, temperature, topP, stop, seed: z.int32() },
    ...{ frequencyPenalty: z.number().lt(2), presencePenalty: z.number().lt(2) },
  },
};

/** The values that change nothing, at any provider. */
const neutralValues: ModelParameters = { temperature: 1, topP: 1, frequencyPenalty: 0, presencePenalty: 0 };

/** Hints: a provider that does not support one of these is asked without it. */
const hints = new Set<ParameterName>(['temperature', 'topP', 'seed', 'frequencyPenalty', 'presencePenalty']);

/** The first parameter, hints aside, that the provider does not take, or not with this value; undefined without one. */
export const findUnsupportedParameter = (
  provider: ProviderId,
  parameters: ModelParameters,
): ParameterName | undefined => untaken(provider, parameters).find((name) => !hints.has(name));

/** The hints that the provider does not take, or not with this value. */
export const ignoredHints = (provider: ProviderId, parameters: ModelParameters): ParameterName[] =>
  untaken(provider, parameters).filter((name) => hints.has(name));

/** The parameters without the hints that the provider does not support. */
export function parametersFor(provider: ProviderId, parameters: ModelParameters): ModelParameters {
  const ignored = new Set<string>(ignoredHints(provider, parameters));
  return Object.fromEntries(Object.entries(parameters).filter(([name]) => !ignored.has(name)));
}

/** A value that changes nothing is accepted by all providers. */
const untaken = (provider: ProviderId, parameters: ModelParameters): ParameterName[] =>
  parameterNames.filter((name) => {
    const value = parameters[name];
    if (value === undefined || value === neutralValues[name]) return false;
    return accepted[provider][name]?.safeParse(value).success !== true;
  });

const parameterNames = Object.keys(modelParametersSchema.shape) as ParameterName[];
