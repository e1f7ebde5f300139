import type { ProviderId } from '../contract.js';
import { childOf, isObject, type Json, keywords, maxDepth } from './schema-bounds.js';

/** For the text of a reply, for the arguments of a tool that is `strict`, and for those of any other tool. */
export type SchemaUse = 'format' | 'strict-tool' | 'tool';

/** Thrown where a provider cannot be asked for a schema at all. No text of the caller's is in `detail`. */
export class UnfitSchema extends Error {
  override readonly name = 'UnfitSchema';

  constructor(
    /** The keywords and names that lead to the place. */
    readonly path: readonly string[],
    readonly detail: string,
  ) {
    super('The provider cannot be asked for this schema.');
  }
}

type Test = (value: unknown) => boolean;

/** A keyword holds one schema, a list of them, or schemas by name; or a test says which values are taken. */
type Taking = 'schema' | 'list' | 'names' | 'constant' | 'no-map' | 'reference' | Test;

interface Dialect {
  readonly taken: ReadonlyMap<string, Taking>;
  /** Keywords that are sent as others. */
  readonly renamed: ReadonlyMap<string, string>;
  /** Whether each schema has to say its type, each object be closed, and none contain itself. */
  readonly isStrict: boolean;
}

const each = <Kind extends Taking>(kind: Kind, keywords: string) =>
  keywords.split(' ').map((keyword): [string, Taking] => [keyword, kind]);
const any = () => true;
const isPrimitive = (value: unknown) => value === null || typeof value !== 'object';
const isText = (value: unknown): value is string => typeof value === 'string';
const isTextOrNumber = (value: unknown) => isText(value) || typeof value === 'number';
const formats = new Set<unknown>('date-time time date duration email hostname uri ipv4 ipv6 uuid'.split(' '));

const takenByAll = [
  ...each(any, 'type title required'),
  ...each(isText, 'description'),
  ...each('names', 'properties $defs definitions'),
  ...each('list', 'anyOf oneOf'),
  ...each('schema', 'items'),
  ...each('reference', '$ref'),
];

// https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations
const claude: Dialect = {
  isStrict: true,
  renamed: new Map([['oneOf', 'anyOf']]),
  taken: new Map([
    ...takenByAll,
    ...each('list', 'allOf'),
    ...each('no-map', 'additionalProperties patternProperties'),
    ...each(any, 'default'),
    ...each(isPrimitive, 'const'),
    ...each((value) => Array.isArray(value) && value.every(isPrimitive), 'enum'),
    ...each((value) => formats.has(value), 'format'),
    ...each((value) => value === 0 || value === 1, 'minItems'),
    // Without looking around, references back and word boundaries.
    ...each((value) => isText(value) && !/\(\?[=!<]|\\[1-9bBk]/.test(value), 'pattern'),
  ]),
};

// The list at `responseJsonSchema` in the types of @google/genai. What is not on it is ignored there.
const gemini: Dialect = {
  isStrict: false,
  renamed: new Map([['definitions', '$defs']]),
  taken: new Map([
    ...takenByAll,
    ...each('list', 'prefixItems'),
    ...each('schema', 'additionalProperties'),
    ...each(any, '$id $anchor format minItems maxItems minimum maximum propertyOrdering'),
    ...each('constant', 'const'),
    ...each((value) => Array.isArray(value) && value.every(isTextOrNumber), 'enum'),
  ]),
};

/**
 * A schema as the provider takes it, and the names of the keywords that it does not take: they went into descriptions.
 * Throws `UnfitSchema` where the provider cannot be asked.
 */
export function fitSchema(
  provider: ProviderId,
  schema: Json,
  use: SchemaUse,
): { schema: Record<string, unknown>; moved: string[] } {
  if (provider === 'openai') return { schema, moved: [] };
  const isClaude = provider !== 'vertexai';
  const root = use === 'format' ? schema : toObject(schema, isClaude);
  // Claude takes any keyword in tools that are not strict.
  if (isClaude && use === 'tool') return { schema: root, moved: [] };
  return new Fitting(root, isClaude ? claude : gemini).result();
}

function toObject(schema: Json, isClaude: boolean): Record<string, unknown> {
  const { type = 'object' } = schema;
  if (type !== 'object') throw new UnfitSchema(['type'], 'must be object');
  const composed = ['anyOf', 'oneOf', 'allOf'].find((keyword) => keyword in schema);
  if (isClaude && composed) throw new UnfitSchema([composed], 'cannot be at the root with this provider');
  return { ...schema, type };
}

const untyped = 'must have a type with this provider';

/** They say nothing to a model. */
const silent: ReadonlySet<string> = new Set(['$schema', '$comment']);
const definitions: ReadonlySet<string> = new Set(['$defs', 'definitions']);

/** One schema on its way to a provider. The depth of schemas bounds the recursion. */
class Fitting {
  readonly #root: Json;
  readonly #dialect: Dialect;
  readonly #moved = new Set<string>();
  /** The way to the place that is being fitted. */
  readonly #path: string[] = [];
  /** The schemas that each one contains, definitions aside, or refers to. */
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

  #schema(schema: unknown): unknown {
    const { isStrict } = this.#dialect;
    if (isStrict && !isObject(schema)) throw new UnfitSchema(this.#path, untyped);
    if (!isObject(schema) || this.#path.length > maxDepth) return schema;
    this.#below.set(schema, []);
    const fitted: Record<string, unknown> = {};
    const notes: string[] = [];
    for (const [keyword, value] of Object.entries(schema)) {
      if (silent.has(keyword)) continue;
      this.#path.push(keyword);
      const taken = this.#take(schema, keyword);
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
  #take(schema: Json, keyword: string): object | undefined {
    const value = schema[keyword];
    const kind = this.#dialect.taken.get(keyword);
    if (kind === undefined) return undefined;
    if (kind === 'reference') return { $ref: this.#refer(schema) };
    if (kind === 'constant') return toEnum(schema);
    if (kind === 'no-map') return refuseMap(value, this.#path);
    const name = this.#dialect.renamed.get(keyword) ?? keyword;
    if (name !== keyword && name in schema) throw new UnfitSchema(this.#path, `cannot be beside ${name}`);
    const taken =
      typeof kind === 'function' ? (kind(value) ? value : undefined) : this.#nested(schema, keyword);
    return taken === undefined ? undefined : { [name]: taken };
  }

  /** The schemas that stand below a keyword; undefined if these are none. */
  #nested(schema: Json, keyword: string): unknown {
    const value = schema[keyword];
    const nest = (below: unknown, ...place: string[]) => {
      if (isObject(below) && !definitions.has(keyword)) this.#below.get(schema)?.push(below);
      this.#path.push(...place);
      const fitted = this.#schema(below);
      this.#path.length -= place.length;
      return fitted;
    };
    const kind = this.#dialect.taken.get(keyword);
    if (kind === 'list')
      return Array.isArray(value) ? value.map((item, place) => nest(item, String(place))) : undefined;
    if (kind === 'schema') return Array.isArray(value) ? undefined : nest(value);
    if (!isObject(value)) return undefined;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, nest(item, key)]));
  }

  /** The reference by the names that the provider takes. */
  #refer(schema: Json): string {
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
    this.#below.get(schema)?.push(target);
    return ['#', ...written].join('/');
  }
}

const toEnum = (schema: Json): object | undefined =>
  isTextOrNumber(schema.const) && !('enum' in schema) ? { enum: [schema.const] } : undefined;

function refuseMap(value: unknown, path: readonly string[]): object {
  if (isObject(value)) throw new UnfitSchema(path, 'must be absent: this provider takes no maps');
  return {};
}

/** Claude wants to know what each schema is, and objects that have nothing beside their properties. */
function close(fitted: Record<string, unknown>, path: readonly string[]): object {
  const says = ['type', 'enum', 'const', 'anyOf', 'allOf', '$ref'].some((keyword) => keyword in fitted);
  if (!says) throw new UnfitSchema(path, untyped);
  const isObjectType = 'properties' in fitted || [fitted.type].flat().includes('object');
  return isObjectType ? { ...fitted, additionalProperties: false } : fitted;
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
