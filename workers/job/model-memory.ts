import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { ProviderId } from '../../shared/contract.js';
import { hints, type ParameterName } from '../../shared/protocol/model-parameters.js';
import type { ModelRequest, Omitted } from './model-request.js';

/** When a model has last refused something. */
interface Refusal {
  readonly model: string;
  /** By `performance.now()`. */
  readonly at: number;
}

/** So long a model is asked without what it has refused, in milliseconds. */
const rememberedMs = 3_600_000;
/** A schema that was last used so many others ago counts as new. */
const maxSchemas = 100;

/** Remembers of a circuit's models which hints they refuse, and which schemas were compiled. */
export class ModelMemory {
  /** The latest for each hint that a refused request had. The other hints are still sent: callers have odd values. */
  readonly #hints = new Map<ParameterName, Refusal>();
  /** The latest of a request with tools that did not forbid the model to reason. */
  #reasoning: Refusal | undefined;
  /** The digests of the schemas. */
  readonly #schemas = new LRUCache<string, true>({ max: maxSchemas });

  /** The parts that this request is made without from the start. */
  omittedFrom({ model, parameters }: ModelRequest): Omitted {
    const remembers = (refusal: Refusal | undefined) =>
      refusal?.model === model && performance.now() - refusal.at < rememberedMs;
    const reasoning = parameters?.tools !== undefined && remembers(this.#reasoning);
    const refused = [...this.#hints.keys()].filter((name) => remembers(this.#hints.get(name)));
    return { hints: reasoning ? hints : new Set(refused), reasoning };
  }

  /** Takes the request that was refused, and what its repetition is made without. */
  recordRefusal({ model, parameters = {} }: ModelRequest, omitted: Omitted): void {
    const refusal = { model, at: performance.now() };
    if (omitted.reasoning) this.#reasoning = refusal;
    else for (const name of omitted.hints ?? []) if (name in parameters) this.#hints.set(name, refusal);
  }

  hasUsed(schema: string): boolean {
    return this.#schemas.has(schema);
  }

  recordUse(schema: string): void {
    this.#schemas.set(schema, true);
  }
}

/** A digest of the schemas that the provider compiles before the model answers; undefined without one. */
export function schemaOf(provider: ProviderId, { model, parameters = {} }: ModelRequest): string | undefined {
  const format = parameters.format?.type === 'json_schema' ? parameters.format.schema : undefined;
  const tools = parameters.tools?.filter(({ strict }) => strict) ?? [];
  if (provider === 'vertexai' || (format === undefined && tools.length === 0)) return undefined;
  const compiled = [model, format, ...tools.map((tool) => [tool.name, tool.parameters])];
  return createHash('sha256').update(JSON.stringify(compiled)).digest('base64url');
}
