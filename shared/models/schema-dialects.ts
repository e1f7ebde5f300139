import { type Json, separateNull, unite, withItems, withoutEmptyText } from './schema-bounds.js';

/** Which keywords of JSON Schema each provider takes. */

type Test = (value: unknown) => boolean;

/**
 * A keyword holds one schema, a list of them, schemas by name, or names of the schema's own properties; or a test says
 * which values are taken.
 */
export type Taking =
  | 'schema'
  | 'list'
  | 'names'
  | 'constant'
  | 'own-names'
  | 'no-map'
  | 'no-object'
  | 'reference'
  | Test;

export interface Dialect {
  /** The model whose dialect it is. */
  readonly name: string;
  readonly taken: ReadonlyMap<string, Taking>;
  /** Keywords that are sent as others. */
  readonly renamed: ReadonlyMap<string, string>;
  /** A schema that says the same with keywords that the provider takes; without one it stays as it is. */
  readonly rewrite: (schema: Json) => Json;
  /**
   * Whether models can be held to a schema. Then each schema has to say its type, each object be closed, and none
   * contain itself; a tool that is not strict may have any keyword.
   */
  readonly isStrict: boolean;
  /** The names of a tool's arguments, which are then plain properties; absent means any names, also in an `anyOf`. */
  readonly argumentName?: RegExp;
}

const each = <Kind extends Taking>(kind: Kind, keywords: string) =>
  keywords.split(' ').map((keyword): [string, Taking] => [keyword, kind]);
/** For keywords that are taken with all their values. */
export const any = () => true;
const isPrimitive = (value: unknown) => value === null || typeof value !== 'object';
const isText = (value: unknown): value is string => typeof value === 'string';
/** Whether Gemini takes it in an `enum`. https://github.com/BerriAI/litellm/pull/14155 */
export const isChoice = (value: unknown) => (isText(value) && value !== '') || typeof value === 'number';
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
export const claude: Dialect = {
  name: 'claude',
  isStrict: true,
  // Names further below may be any, as was measured at Bedrock
  // (https://github.com/aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws/issues/709).
  argumentName: /^[a-zA-Z0-9_.-]{1,64}$/,
  rewrite: unite,
  renamed: new Map([['oneOf', 'anyOf']]),
  taken: new Map([
    ...takenByAll,
    ...each('no-object', 'allOf'),
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
export const gemini: Dialect = {
  name: 'gemini',
  isStrict: false,
  rewrite: (schema) => withItems(withoutEmptyText(separateNull(unite(schema)))),
  renamed: new Map([['definitions', '$defs']]),
  taken: new Map([
    ...takenByAll,
    ...each('list', 'prefixItems'),
    ...each('schema', 'additionalProperties'),
    ...each(any, '$id $anchor format minItems maxItems minimum maximum propertyOrdering'),
    ...each('constant', 'const'),
    ...each('own-names', 'required'),
    ...each((value) => Array.isArray(value) && value.length > 0 && value.every(isChoice), 'enum'),
  ]),
};
