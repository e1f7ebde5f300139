import type { ProviderId } from '../contracts/contract.js';
import type { Part } from '../conversation.js';
import { unsupportedImage } from './image-limits.js';
import { fitSchema, type SchemaUse, useOf } from './json-schema.js';
import {
  hints,
  type JsonSchema,
  type ModelParameters,
  modelParametersSchema,
  neutralValues,
  type ParameterName,
} from './model-parameters.js';
import { providerModels } from './provider-models.js';
import { UnfitSchema } from './schema-bounds.js';

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
  const parameter = unsupportedNames(provider, parameters).find((name) => !isHint(name, parameters));
  if (parameter !== undefined)
    return { parameter, detail: 'is not supported by this provider, or not with this value' };
  return findMisnamed(provider, parameters) ?? findUnfitSchema(provider, parameters);
}

function findMisnamed(provider: ProviderId, { tools = [] }: ModelParameters): Unsupported | undefined {
  for (const [place, { name }] of tools.entries()) {
    const detail = misnamedReason(provider, name);
    if (detail !== undefined) return { parameter: 'tools', path: [place, 'name'], detail };
  }
  return undefined;
}

/** Why the provider takes no tool of this name; undefined where it does. */
function misnamedReason(provider: ProviderId, name: string): string | undefined {
  const { toolName } = providerModels[provider];
  return toolName?.pattern.test(name) === false ? toolName.rule : undefined;
}

interface Declared extends Required<Pick<Unsupported, 'path'>> {
  parameter: 'tools' | 'format';
  schema: JsonSchema;
  use: SchemaUse;
}

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
    const name = `${providerModels[provider].schemas?.name} ${use}`;
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
export function unsupportedReason(provider: ProviderId, part: Part): string | undefined {
  if (part.type === 'image') return unsupportedImage(provider, part);
  return part.type === 'tool_call' ? misnamedReason(provider, part.name) : undefined;
}

/** The hints that the provider does not take, or not with this value; those within a parameter with its name before. */
export function ignoredHints(provider: ProviderId, parameters: ModelParameters): string[] {
  const { schemas } = providerModels[provider];
  const ignoresStrict = schemas?.isStrict === false && parameters.tools?.some(({ strict }) => strict);
  const keywords = schemasOf(parameters).flatMap((declared) =>
    fitted(provider, declared).moved.map((keyword) => `${declared.parameter}.${keyword}`),
  );
  return [
    ...unsupportedNames(provider, parameters).filter((name) => isHint(name, parameters)),
    ...(ignoresStrict ? ['tools.strict'] : []),
    ...new Set(keywords),
  ];
}

/** Whether the provider takes a parameter at all, as far as it is known of which model. */
export function takesParameter(provider: ProviderId, name: ParameterName, model?: string): boolean {
  const { parameters, ofSomeModels } = providerModels[provider];
  const isOfSome = model !== undefined && ofSomeModels?.parameters.includes(name);
  return parameters[name] !== undefined && (!isOfSome || ofSomeModels?.models.test(model) === true);
}

/** Whether the provider takes a parameter with this value. */
export const takesValue = (provider: ProviderId, name: ParameterName, value: unknown): boolean =>
  providerModels[provider].parameters[name]?.safeParse(value).success === true;

/** The parameters without the hints that the provider never takes. Schemas are as they were. */
export function parametersFor(provider: ProviderId, parameters: ModelParameters): ModelParameters {
  const ignored = new Set<string>(
    unsupportedNames(provider, parameters).filter((name) => isHint(name, parameters)),
  );
  return Object.fromEntries(Object.entries(parameters).filter(([name]) => !ignored.has(name)));
}

/**
 * Programs that ask for `json_object` ask for JSON in a message as well, because OpenAI demands it. Instructor and
 * others do so with each model. https://platform.openai.com/docs/guides/structured-outputs#json-mode
 */
const isHint = (name: ParameterName, { format }: ModelParameters): boolean =>
  hints.has(name) || (name === 'format' && format?.type === 'json_object');

/** A value that changes nothing is accepted by all providers. */
const unsupportedNames = (provider: ProviderId, parameters: ModelParameters): ParameterName[] =>
  parameterNames.filter((name) => {
    const value = parameters[name];
    if (value === undefined || value === neutralValues[name]) return false;
    return !takesValue(provider, name, value);
  });

const parameterNames = Object.keys(modelParametersSchema.shape) as ParameterName[];
