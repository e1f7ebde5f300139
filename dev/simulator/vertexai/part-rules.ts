import { isObject, type JsonObject } from '../../../shared/json/json.js';
import type { PartRules } from '../part-rules.js';
import { snakeCase } from '../refusal.js';
import { schemasIn } from '../schemas.js';
import { unable, vertexError } from './errors.js';

const imageTypes = new Set(['image/png', 'image/jpeg', 'image/webp']);

/** Vertex AI's rules for tools, formats and parts. */
export const vertexPartRules: PartRules = {
  refuse: (words) => vertexError(400, words),
  toolName: /^[a-zA-Z_][\w.:-]{0,127}$/,
  toolNamed: (_name, index) =>
    `The GenerateContentRequest proto is invalid:\n  * tools[0].function_declarations[${index}].name: [FIELD_INVALID] Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.`,
  sameName: (name) => `Duplicate function declaration found: ${name}`,
  noObject: ({ name }) =>
    unable(`\`${name}\` functionDeclaration parameters schema should be of type OBJECT.`),
  // Beside `$ref` a schema has nothing that does not begin with a `$`; other keywords are taken or ignored.
  schema(root, { index }) {
    const places = schemasIn(root);
    const schemas = places.map(({ schema }) => (isObject(schema) ? schema : {}));
    const wrong = schemas.filter(({ $ref }) => typeof $ref === 'string').flatMap(Object.keys);
    const others = wrong.filter((key) => !key.startsWith('$'));
    if (others.length > 0)
      return unable(`a schema with $ref must not set other fields, but has ${others.join(', ')}.`);
    const at =
      index === undefined
        ? 'generation_config.response_schema'
        : `tools[0].function_declarations[${index}].parameters`;
    const faults = places.flatMap(({ path }, n) =>
      faultsOf(schemas[n] ?? {}).map((fault) => `* GenerateContentRequest.${at}${written(path)}.${fault}\n`),
    );
    return faults.length > 0 ? faults.join('') : undefined;
  },
  notOffered: () => 'allowed_function_names should be a subset of the provided function_declarations.',
  callWithoutResult: () =>
    'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
  resultWithoutCall: () =>
    'Please ensure that function response turn comes immediately after a function call turn.',
  textBehindResult: () => 'Requests ending with a model turn are not supported.',
  image({ mediaType }, type) {
    if (!imageTypes.has(mediaType))
      return unable(`it has a mimeType parameter with value ${mediaType}, which is not supported.`);
    return type === undefined ? 'Provided image is not valid.' : undefined;
  },
  unsigned: (name, turn) =>
    unable(`function call \`${name}\` in the ${turn + 1}. content block is missing a \`thought_signature\`.`),
};

/**
 * What Gemini refuses in one schema: `required` (https://github.com/probelabs/probe/issues/569), `enum`
 * (https://github.com/sbroenne/mcp-server-excel/issues/607, https://github.com/elastic/kibana/issues/286301) and `items`
 * (https://github.com/router-for-me/CLIProxyAPI/issues/5292).
 */
function faultsOf(schema: JsonObject): string[] {
  const { properties, required = [], type, enum: values } = schema;
  const names: unknown[] = [required].flat();
  const unnamed = names.findIndex((name) => !Object.hasOwn(Object(properties), String(name)));
  const empty = [values].flat().indexOf('');
  const isArray = [type].flat().includes('array');
  return [
    ...(unnamed >= 0 ? [`required[${unnamed}]: property is not defined`] : []),
    ...(empty >= 0 ? [`enum[${empty}]: cannot be empty`] : []),
    ...(Array.isArray(values) && values.length === 0
      ? ['enum: should be non-empty for STRING type with enum format']
      : []),
    ...(isArray && !('items' in schema || 'prefixItems' in schema) ? ['items: missing field'] : []),
  ];
}

/** The place as Google writes it, such as `.properties[city].any_of[0]`. */
const written = (path: readonly string[]): string =>
  path
    .map((key, n) =>
      /^(properties|\$defs|\w+Of|prefixItems)$/.test(path[n - 1] ?? '') ? `[${key}]` : `.${snakeCase(key)}`,
    )
    .join('');
