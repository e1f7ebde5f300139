import type { ProviderId } from '../contracts/contract.js';
import { isObject } from '../json/json.js';
import type { Tool } from './model-parameters.js';
import { providerModels } from './provider-models.js';
import {
  childOf,
  type Json,
  keywords,
  maxDepth,
  UnfitSchema,
  unite,
  withReferredRoot,
} from './schema-bounds.js';
import { any, type Dialect, isChoice, type Taking } from './schema-dialects.js';
import { toCurrentDraft } from './schema-drafts.js';

/** For the text of a reply, for the arguments of a tool that is `strict`, and for those of any other tool. */
export type SchemaUse = 'format' | 'strict-tool' | 'tool';

/** The use of a tool's schema. */
export const useOf = ({ strict }: Tool): SchemaUse => (strict ? 'strict-tool' : 'tool');

/**
 * A schema as the provider takes it, and the names of the keywords that it does not take: they went into descriptions.
 * Throws `UnfitSchema` where the provider cannot be asked.
 */
export function fitSchema(
  provider: ProviderId,
  schema: Json,
  use: SchemaUse,
): { schema: Record<string, unknown>; moved: string[] } {
  const dialect = providerModels[provider].schemas;
  if (dialect === undefined) return { schema, moved: [] };
  const takesAll = dialect.isStrict && use === 'tool';
  const current = toCurrentDraft(schema, (keyword) => takesAll || isTaken(dialect, keyword));
  const whole = unite(withReferredRoot(unite(current)));
  const root = use === 'format' ? whole : toArguments(whole, dialect);
  return takesAll ? { schema: root, moved: [] } : new Fitting(root, dialect).result();
}

/** Values that do not pass a test go into words. What stands behind a tuple becomes its `items`. */
function isTaken({ taken }: Dialect, keyword: string): boolean {
  const kind = taken.get(keyword === 'additionalItems' ? 'items' : keyword);
  return typeof kind === 'string' || kind === any;
}

function toArguments(schema: Json, { argumentName }: Dialect): Record<string, unknown> {
  const { type = 'object' } = schema;
  if (type !== 'object') throw new UnfitSchema(['type'], 'must be object');
  const composed = ['anyOf', 'oneOf', 'allOf'].find((keyword) => keyword in schema);
  if (argumentName && composed) throw new UnfitSchema([composed], 'cannot be at the root with this provider');
  const misnamed = Object.keys(schema.properties ?? {}).find((name) => argumentName?.test(name) === false);
  if (misnamed !== undefined) throw new UnfitSchema(['properties', misnamed], wrongName);
  return { ...schema, type };
}

const wrongName = 'must have a name of 1 to 64 letters, digits, _, . and - with this provider';
const untyped = 'must have a type with this provider';

/** Keywords that models ignore; dropped. */
const metadataKeywords: ReadonlySet<string> = new Set(['$schema', '$comment']);
const definitions: ReadonlySet<string> = new Set(['$defs', 'definitions']);

/** A schema that is being fitted, those that it contains, definitions aside, or refers to, and what goes into words. */
interface Place {
  readonly schema: Json;
  readonly below: object[];
  readonly notes: string[];
}

/** One schema on its way to a provider. The depth of schemas bounds the recursion. */
class Fitting {
  readonly #root: Json;
  readonly #dialect: Dialect;
  readonly #moved = new Set<string>();
  /** The way to the place that is being fitted. */
  readonly #path: string[] = [];
  /** The schemas that each schema contains or refers to, all of them as they came. */
  readonly #below = new Map<object, object[]>();

  constructor(root: Json, dialect: Dialect) {
    this.#root = root;
    this.#dialect = dialect;
  }

  result() {
    const schema = this.#schema(this.#root) as Record<string, unknown>;
    if (this.#dialect.isStrict && hasCircle(this.#below)) throw new UnfitSchema([], 'cannot contain itself');
    return { schema, moved: [...this.#moved] };
  }

  #schema(given: unknown): unknown {
    const { isStrict, rewrite } = this.#dialect;
    if (isStrict && !isObject(given)) throw new UnfitSchema(this.#path, untyped);
    if (!isObject(given) || this.#path.length > maxDepth) return given;
    const notes: string[] = [];
    const place: Place = { schema: rewrite(given), below: [], notes };
    this.#below.set(given, place.below);
    const fitted: Record<string, unknown> = {};
    for (const [keyword, value] of Object.entries(place.schema)) {
      if (metadataKeywords.has(keyword)) continue;
      this.#path.push(keyword);
      const taken = this.#take(place, keyword);
      this.#path.pop();
      Object.assign(fitted, taken);
      if (taken === undefined) notes.push(this.#move(keyword, value));
    }
    if (notes.length > 0)
      fitted.description = [fitted.description ?? [], notes.join(', ')].flat().join('\n\n');
    return isStrict ? close(fitted, this.#path) : separateReference(fitted, this.#path);
  }

  #move(keyword: string, value: unknown): string {
    this.#moved.add(keywords.has(keyword) ? keyword : 'others');
    return `${keyword}: ${JSON.stringify(value)}`;
  }

  /** A keyword as the provider takes it; undefined if it does not. */
  #take(place: Place, keyword: string): object | undefined {
    const { schema } = place;
    const value = schema[keyword];
    const kind = this.#dialect.taken.get(keyword);
    if (kind === undefined) return undefined;
    if (kind === 'reference') return { $ref: this.#refer(place) };
    if (kind === 'constant') return toEnum(schema);
    if (kind === 'own-names') return this.#ownNames(place, keyword);
    if (kind === 'no-map') return refuseMap(value, this.#path);
    if (kind === 'no-object') return refuseObjects(value, this.#path);
    const name = this.#dialect.renamed.get(keyword) ?? keyword;
    if (name !== keyword && name in schema) throw new UnfitSchema(this.#path, `cannot be beside ${name}`);
    const taken =
      typeof kind === 'function' ? (kind(value) ? value : undefined) : this.#nested(place, keyword);
    return taken === undefined ? undefined : { [name]: taken };
  }

  /** Gemini refuses names of no property (https://github.com/probelabs/probe/issues/569): they go into words. */
  #ownNames({ schema, notes }: Place, keyword: string): object {
    const names = schema[keyword] as string[];
    const isOwn = (name: string) => Object.hasOwn(Object(schema.properties), name);
    const own = names.filter(isOwn);
    const others = names.filter((name) => !isOwn(name));
    if (others.length > 0) notes.push(this.#move(keyword, others));
    return own.length > 0 ? { [keyword]: own } : {};
  }

  /** The schemas that stand below a keyword; undefined if these are none. */
  #nested({ schema, below }: Place, keyword: string): unknown {
    const value = schema[keyword];
    const nest = (nested: unknown, ...steps: string[]) => {
      if (isObject(nested) && !definitions.has(keyword)) below.push(nested);
      this.#path.push(...steps);
      const fitted = this.#schema(nested);
      this.#path.length -= steps.length;
      return fitted;
    };
    const kind = this.#dialect.taken.get(keyword);
    if (kind === 'list')
      return Array.isArray(value) ? value.map((item, place) => nest(item, String(place))) : undefined;
    if (kind === 'schema') return nest(value);
    if (!isObject(value)) return undefined;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, nest(item, key)]));
  }

  /** The reference by the names that the provider takes. */
  #refer({ schema, below }: Place): string {
    const [first, ...segments] = String(schema.$ref).split('/');
    const { taken, renamed } = this.#dialect;
    let target: unknown = this.#root;
    let kind: Taking | undefined = 'schema';
    const written = segments.map((segment) => {
      target = childOf(target, segment);
      const isKeyword: boolean = kind === 'schema';
      if (isKeyword) kind = taken.get(segment);
      else kind = kind === 'list' || kind === 'names' ? 'schema' : undefined;
      return (isKeyword && renamed.get(segment)) || segment;
    });
    if (first !== '#' || kind !== 'schema' || !isObject(target))
      throw new UnfitSchema(this.#path, 'must refer to a schema that this provider takes');
    below.push(target);
    return ['#', ...written].join('/');
  }
}

const toEnum = (schema: Json): object | undefined =>
  isChoice(schema.const) && !('enum' in schema) ? { enum: [schema.const] } : undefined;

/** Undefined for what can go into words, such as a pattern. */
function refuseObjects(value: unknown, path: readonly string[]): undefined {
  const branches: unknown[] = [value].flat();
  if (branches.some((branch) => isObject(branch) && ('$ref' in branch || 'properties' in branch)))
    throw new UnfitSchema(path, 'must be one schema with this provider');
}

function refuseMap(value: unknown, path: readonly string[]): object {
  if (isObject(value)) throw new UnfitSchema(path, 'must be absent: this provider takes no maps');
  return {};
}

/** Claude wants to know what each schema is, and objects that have nothing beside their properties. */
function close(fitted: Record<string, unknown>, path: readonly string[]): object {
  const says = ['type', 'enum', 'const', 'anyOf', '$ref'].some((keyword) => keyword in fitted);
  if (!says) throw new UnfitSchema(path, untyped);
  const { type, properties = {}, ...others } = fitted;
  const isObjectType = 'properties' in fitted || [type].flat().includes('object');
  if (!isObjectType) return fitted;
  if (!('anyOf' in fitted || '$ref' in fitted)) return { ...fitted, additionalProperties: false };
  // The objects are further below: one that is closed here would have none of their properties.
  if (isObject(properties) && Object.keys(properties).length === 0) return others;
  throw new UnfitSchema([...path, 'properties'], 'cannot be beside other schemas with this provider');
}

/** Gemini wants nothing beside a reference. */
function separateReference({ $ref, ...others }: Record<string, unknown>, path: readonly string[]): object {
  if ($ref === undefined) return others;
  if (Object.keys(others).every((keyword) => keyword.startsWith('$'))) return { $ref, ...others };
  if ('anyOf' in others) throw new UnfitSchema([...path, '$ref'], 'cannot be beside anyOf');
  return { anyOf: [{ $ref }], ...others };
}

/** Whether a schema leads back to itself: takes away those that none leads to, until there are no more of them. */
function hasCircle(below: ReadonlyMap<object, readonly object[]>): boolean {
  const leading = new Map<object, number>();
  for (const targets of below.values())
    for (const target of targets) leading.set(target, (leading.get(target) ?? 0) + 1);
  const free = [...below.keys()].filter((schema) => !leading.has(schema));
  for (const schema of free) {
    for (const target of below.get(schema) ?? []) {
      const left = (leading.get(target) ?? 0) - 1;
      leading.set(target, left);
      if (left === 0) free.push(target);
    }
  }
  return free.length < below.size;
}
