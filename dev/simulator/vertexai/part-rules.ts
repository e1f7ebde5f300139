import { isObject } from '../../../shared/json.js';
import type { PartRules } from '../part-rules.js';
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
  schema(root) {
    const schemas = schemasIn(root).map(({ schema }) => (isObject(schema) ? schema : {}));
    const wrong = schemas.filter(({ $ref }) => typeof $ref === 'string').flatMap(Object.keys);
    const others = wrong.filter((key) => !key.startsWith('$'));
    if (others.length === 0) return undefined;
    return unable(`a schema with $ref must not set other fields, but has ${others.join(', ')}.`);
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
