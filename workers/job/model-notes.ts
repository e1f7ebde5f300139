import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { partsOf, type Turn, textOf } from '../../shared/conversation.js';
import { hints, type ModelParameters, type ParameterName } from '../../shared/protocol/model-parameters.js';
import { Tally } from '../../shared/runtime/tally.js';
import { addedParts, type Refusal } from '../providers/refusals.js';
import type { ModelRequest, Omitted } from './model-request.js';

/** Facts that the calls of a model have shown, for its next ones. */
interface ModelNote {
  readonly hints: RefusedHints;
  readonly budget: Pick<RetryBudget, 'earn' | 'spend'>;
}

/** A model that was called so many others ago is forgotten, which costs one more refusal. */
const maxModels = 200;

/** The notes about the models of a pool. */
export class ModelNotes {
  readonly #notes = new LRUCache<string, ModelNote>({ max: maxModels });
  readonly #clock: { now(): number };

  /** `clock` measures how long ago something was. */
  constructor(clock: { now(): number } = performance) {
    this.#clock = clock;
  }

  /** Undefined until there is something to note: names that callers make up take no room. */
  find(model: string): ModelNote | undefined {
    return this.#notes.get(model);
  }

  of(model: string): ModelNote {
    const note = this.find(model) ?? { hints: new RefusedHints(this.#clock), budget: new RetryBudget() };
    this.#notes.set(model, note);
    return note;
  }
}

/** So long a model is asked without what it has refused, in milliseconds. */
const rememberedMs = 3_600_000;
/** Refusals of a model that are remembered: anyone can send values that no model takes. */
const maxRefusals = 200;
/** One user's odd values leave as much room for what the others have met. */
const maxRefusalsPerUser = maxRefusals / 2;
/** A refusal that so many users have met counts for all. */
const enoughUsers = 2;
/** So many users of a refusal are known. */
const maxUsers = 100;

const omittable = [...addedParts, 'signatures'] as const;

interface Remembered {
  /** The users who have met the refusal. */
  readonly met: Set<string>;
  /** Users that it does not count for: a call that was made without the refused part has failed for them. */
  readonly exempt: Set<string>;
  /** Whether the model has taken the part since. */
  isRefuted: boolean;
}

/**
 * Remembers which hints a model refuses, which of the parts that adapters add, and the conversations whose signatures
 * it refuses. A refusal counts for the users who have met it, and once two have, for all. It no longer counts for a
 * user whose call fails that was made without that part, unless the call with it is refused, too. When the model takes
 * the part, it counts for the users alone who have met it.
 */
export class RefusedHints {
  /** Hints with their values, and the efforts beside them: the model may take other values, or beside others. */
  readonly #refused: LRUCache<string, Remembered>;

  constructor(clock: { now(): number }) {
    this.#refused = new LRUCache({ max: maxRefusals, ttl: rememberedMs, ttlResolution: 0, perf: clock });
  }

  /** The parts that this user's request is made without from the start. */
  omittedFrom(request: Pick<ModelRequest, 'parameters' | 'turns'>, user = ''): Omitted {
    const { parameters = {} } = request;
    if (this.#refused.size === 0) return {};
    const isRefused = (name: ParameterName, omitted: Omitted) =>
      hintKeys(name, parameters, omitted).some((key) => this.#counts(key, user));
    const isOff = hasTools(parameters) && this.#counts(reasoning, user);
    const effort = [...hints].filter((name) => name === 'reasoningEffort' && isRefused(name, {}));
    const first: Omitted = { hints: new Set(effort), reasoning: isOff };
    const parts = omittable.filter((part) => keysOf(request, part).some((key) => this.#counts(key, user)));
    return {
      ...Object.fromEntries(parts.map((part) => [part, true])),
      hints: new Set([...hints].filter((name) => isRefused(name, first))),
      reasoning: isOff,
    };
  }

  /** Takes the request that was refused, once its repetition without that part was answered. */
  recordRefusal(request: ModelRequest, refusal: Refusal | undefined, user = ''): void {
    const [key, ...others] = keysOf(request, refusal);
    // The model may take each of several alone.
    if (key === undefined || others.length > 0) return;
    const remembered = this.#refused.get(key) ?? this.#makeRoom(user);
    remembered.exempt.delete(user);
    if (remembered.met.size < maxUsers) remembered.met.add(user);
    this.#refused.set(key, remembered);
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

  #omittedBy(request: ModelRequest, omitted: Omitted) {
    const keys = keysOf(request, [...(omitted.hints ?? [])], omitted);
    if (omitted.reasoning) keys.push(...keysOf(request, 'effort'));
    for (const part of omittable) if (omitted[part]) keys.push(...keysOf(request, part));
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
}

/** A refused effort is remembered for requests with tools: it is that of a model that must not reason beside them. */
function keysOf(
  { parameters = {}, turns }: Pick<ModelRequest, 'parameters' | 'turns'>,
  refusal: Refusal = [],
  omitted: Omitted = {},
): string[] {
  if (refusal === 'effort')
    return hasTools(parameters) && parameters.reasoningEffort !== 'none' ? [reasoning] : [];
  if (refusal === 'signatures') return turns.some(isSigned) ? [`signatures ${digestOf(turns)}`] : [];
  // Some models have no streams beside tools alone.
  if (refusal === 'stream') return [`stream ${hasTools(parameters)}`];
  if (typeof refusal === 'string') return refusal === 'toolChoice' ? [] : [refusal];
  return refusal
    .filter((name) => (parameters as ModelParameters)[name] !== undefined)
    .flatMap((name) => hintKeys(name, parameters, omitted));
}

/**
 * A hint beside the effort that is asked for, and beside the one that is sent: since GPT-5.1 models take a temperature
 * beside the effort `none` alone. https://github.com/vercel/ai/issues/10932
 */
function hintKeys(name: ParameterName, parameters: ModelParameters, omitted: Omitted): string[] {
  const key = `${name} ${parameters[name]}`;
  if (name === 'reasoningEffort') return [key];
  const asked = parameters.reasoningEffort;
  const kept = omitted.hints?.has('reasoningEffort') ? undefined : asked;
  const efforts = new Set([asked, omitted.reasoning ? 'none' : kept]);
  return [...efforts].map((effort) => `${key} beside ${effort}`);
}

const isSigned = (turn: Turn): boolean => partsOf(turn).some(({ type }) => type === 'opaque');

/** A conversation by the first text of its user, which it has in each of its requests. */
const digestOf = (turns: readonly Turn[]): string =>
  createHash('sha256')
    .update(textOf(turns.find(({ role }) => role === 'user') ?? { content: '' }))
    .digest('base64url');

const hasTools = ({ tools }: ModelParameters): boolean => tools !== undefined;
/** The key of an effort beside tools; no hint has this name. */
const reasoning = 'reasoning';

const attemptsPerRetry = 10;
const maxSaved = 20 * attemptsPerRetry;

/**
 * Keeps the retries of a model to a share of its traffic, so that a failing model does not get twice the calls of a
 * healthy one: one retry for every ten first attempts. It starts with 20, and saves at most 20. No user may spend more
 * than is then left for the others, so one user alone gets half. All who have no name count as one.
 */
export class RetryBudget {
  #earned = maxSaved;
  /** The retries that each user has spent and not earned back. */
  #spent = new Tally();

  /** To be called once for every first attempt. */
  earn(user = ''): void {
    this.#earned = Math.min(maxSaved, this.#earned + 1);
    if (this.#earned === maxSaved) this.#spent = new Tally();
    else if (this.#spent.of(user) > 0) this.#spent.add(user, -1);
  }

  /** Takes one retry out of the budget; false when there is none for this user. */
  spend(user = ''): boolean {
    const left = this.#earned - attemptsPerRetry;
    if (left < this.#spent.of(user) + attemptsPerRetry) return false;
    this.#earned = left;
    this.#spent.add(user, attemptsPerRetry);
    return true;
  }
}
