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
/** One user's odd values leave as much room for what the others have met. */
const maxRefusalsPerUser = maxRefusals / 2;
/** A refusal that so many users have met counts for all. */
const enoughUsers = 2;
/** So many users of a refusal are known. */
const maxUsers = 100;

interface Remembered {
  /** The users who have met the refusal. */
  readonly met: Set<string>;
  /** The users for whom it does not count: a call of theirs has failed that was made without the refused part. */
  readonly exempt: Set<string>;
  /** Whether the model has taken the part since. */
  isRefuted: boolean;
}

/**
 * Remembers of a circuit's models which hints they refuse, and which schemas were compiled. A refusal counts for the
 * users who have met it, and once two have, for all. It no longer counts for a user whose call fails that was made
 * without that part, unless the call with it is refused, too. When the model takes the part, it counts for the users
 * alone who have met it.
 */
export class ModelMemory {
  /** Hints with their models and values: callers have odd values, and the model may take others. */
  readonly #refused: LRUCache<string, Remembered>;
  /** The digests of the schemas. */
  readonly #schemas = new LRUCache<string, true>({ max: maxSchemas });

  /** `clock` measures how long ago something was. */
  constructor(clock: { now(): number } = performance) {
    this.#refused = new LRUCache({ max: maxRefusals, ttl: rememberedMs, ttlResolution: 0, perf: clock });
  }

  /** The parts that this user's request is made without from the start. */
  omittedFrom({ model, parameters = {} }: ModelRequest, user = ''): Omitted {
    if (this.#refused.size === 0) return {};
    const refused = [...hints].filter((name) => this.#counts(keyOf(model, name, parameters), user));
    return {
      hints: new Set(refused),
      reasoning: hasTools(parameters) && this.#counts(reasoningOf(model), user),
    };
  }

  /** Takes the request that was refused, once its repetition without that part was answered. */
  recordRefusal(request: ModelRequest, refusal: Refusal | undefined, user = ''): void {
    const keys = keysOf(request, refusal);
    // The model may take each of several alone.
    if (keys.length > 1) return;
    for (const key of keys) {
      const { met, exempt, isRefuted } = this.#refused.get(key) ?? this.#makeRoom(user);
      exempt.delete(user);
      if (met.size < maxUsers) met.add(user);
      this.#refused.set(key, { met, exempt, isRefuted });
    }
  }

  /** Takes a request of a user whose call failed, although it was made without what is remembered. */
  forget(request: ModelRequest, omitted: Omitted, user = ''): void {
    for (const [key, { met, exempt }] of this.#omittedBy(request, omitted)) {
      exempt.add(user);
      const isLeft = exempt.size > maxUsers || [...met].every((each) => exempt.has(each));
      if (isLeft) this.#refused.delete(key);
    }
  }

  /** Takes a user's request that was answered as it was asked for, once it was refused without what is remembered. */
  refute(request: ModelRequest, omitted: Omitted, user = ''): void {
    for (const [, remembered] of this.#omittedBy(request, omitted)) remembered.isRefuted = true;
    this.forget(request, omitted, user);
  }

  #omittedBy(request: ModelRequest, { hints: omitted = new Set(), reasoning }: Omitted) {
    const keys = [...keysOf(request, [...omitted]), ...(reasoning ? keysOf(request, 'effort') : [])];
    return keys.flatMap((key): [string, Remembered][] => {
      const remembered = this.#refused.get(key);
      return remembered ? [[key, remembered]] : [];
    });
  }

  #counts(key: string, user: string): boolean {
    const { met, exempt, isRefuted } = this.#refused.get(key) ?? {};
    if (met === undefined || exempt?.has(user)) return false;
    return met.has(user) || (!isRefuted && met.size >= enoughUsers);
  }

  /** Forgets what this user alone met longest ago, if that is too much. */
  #makeRoom(user: string): Remembered {
    const own = [...this.#refused.entries()].filter(([, { met }]) => met.size === 1 && met.has(user));
    const [oldest] = own.length < maxRefusalsPerUser ? [] : (own.at(-1) ?? []);
    if (oldest !== undefined) this.#refused.delete(oldest);
    return { met: new Set(), exempt: new Set(), isRefuted: false };
  }

  hasUsed(schema: string): boolean {
    return this.#schemas.has(schema);
  }

  recordUse(schema: string): void {
    this.#schemas.set(schema, true);
  }
}

/** A refused effort is remembered for requests with tools: it is that of a model that must not reason beside them. */
function keysOf({ model, parameters = {} }: ModelRequest, refusal: Refusal = []): string[] {
  if (refusal === 'effort')
    return hasTools(parameters) && parameters.reasoningEffort !== 'none' ? [reasoningOf(model)] : [];
  if (typeof refusal === 'string') return [];
  return refusal
    .filter((name) => (parameters as ModelParameters)[name] !== undefined)
    .map((name) => keyOf(model, name, parameters));
}

const hasTools = ({ tools }: ModelParameters): boolean => tools !== undefined;
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
