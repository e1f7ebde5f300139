import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { ProviderId } from '../../shared/contract.js';
import { hints, type ModelParameters, type ParameterName } from '../../shared/protocol/model-parameters.js';
import type { Refusal } from '../providers/refusals.js';
import type { ModelRequest, Omitted } from './model-request.js';

/** So long a model is asked without what it has refused, in milliseconds. */
const rememberedMs = 3_600_000;
/** A schema that was last used so many others ago counts as new. */
const maxSchemas = 100;

/** Refusals that are remembered: anyone can send values that no model takes. */
const maxRefusals = 200;

/** Remembers of a circuit's models which hints they refuse, and which schemas were compiled. */
export class ModelMemory {
  /** Hints with their models and values: callers have odd values, and the model may take others. */
  readonly #refused: LRUCache<string, true>;
  /** The digests of the schemas. */
  readonly #schemas = new LRUCache<string, true>({ max: maxSchemas });

  /** `clock` measures how long ago something was. */
  constructor(clock: { now(): number } = performance) {
    this.#refused = new LRUCache({ max: maxRefusals, ttl: rememberedMs, ttlResolution: 0, perf: clock });
  }

  /** The parts that this request is made without from the start. */
  omittedFrom({ model, parameters = {} }: ModelRequest): Omitted {
    if (this.#refused.size === 0) return {};
    const refused = [...hints].filter((name) => this.#refused.has(keyOf(model, name, parameters)));
    const reasoning = parameters.tools !== undefined && this.#refused.has(reasoningOf(model));
    return { hints: new Set(refused), reasoning };
  }

  /** Takes the request that was refused; a refused effort is that of a model that must not reason beside tools. */
  recordRefusal({ model, parameters = {} }: ModelRequest, refusal: Refusal): void {
    if (refusal === 'effort') this.#refused.set(reasoningOf(model), true);
    if (typeof refusal === 'string') return;
    const sent: ModelParameters = parameters;
    for (const name of refusal)
      if (sent[name] !== undefined) this.#refused.set(keyOf(model, name, sent), true);
  }

  hasUsed(schema: string): boolean {
    return this.#schemas.has(schema);
  }

  recordUse(schema: string): void {
    this.#schemas.set(schema, true);
  }
}

const reasoningOf = (model: string): string => `reasoning ${model}`;
const keyOf = (model: string, name: ParameterName, parameters: ModelParameters): string =>
  `${name} ${parameters[name]} ${model}`;

/** A digest of the schemas that the provider compiles before the model answers; undefined without one. */
export function schemaOf(provider: ProviderId, { model, parameters = {} }: ModelRequest): string | undefined {
  const format = parameters.format?.type === 'json_schema' ? parameters.format.schema : undefined;
  const tools = parameters.tools?.filter(({ strict }) => strict) ?? [];
  if (provider === 'vertexai' || (format === undefined && tools.length === 0)) return undefined;
  const compiled = [model, format, ...tools.map((tool) => [tool.name, tool.parameters])];
  return createHash('sha256').update(JSON.stringify(compiled)).digest('base64url');
}
