import { isObject, type JsonObject } from '../json.js';
import type { PartRules } from '../part-rules.js';
import { firstRefusal, type Refusal } from '../refusal.js';
import { openAiError } from './errors.js';

/** OpenAI's rules for tools, formats and parts. */
export const openAiPartRules: PartRules = {
  toolName: /^[a-zA-Z0-9_-]{1,64}$/,
  toolNamed(_name, index) {
    const param = `tools[${index}].function.name`;
    const pattern = "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.";
    return invalid(`Invalid '${param}': string does not match pattern. ${pattern}`, param);
  },
  noObject({ name, parameters }, index) {
    const type = typeof parameters?.type === 'string' ? parameters.type : 'None';
    const why = `schema must be a JSON Schema of 'type: "object"', got 'type: "${type}"'.`;
    return invalid(`Invalid schema for function '${name}': ${why}`, `tools[${index}].function.parameters`);
  },
  schema(schema, { strict, name, index }) {
    if (strict !== true) return undefined;
    return index === undefined
      ? checkStrict(schema, { param: 'response_format', of: `response_format '${name}'` })
      : checkStrict(schema, { param: `tools[${index}].function.parameters`, of: `function '${name}'` });
  },
  choiceWithoutTools: () => onlyWithTools('tool_choice'),
  notOffered: (name) => invalid(`Tool choice '${name}' not found in 'tools' parameter.`, 'tool_choice'),
  callId: /^.{1,40}$/s,
  callNamed: (id) =>
    invalid(
      `Invalid 'messages[].tool_calls[].id': string too long. Expected a string with maximum length 40, but got a string with length ${id.length} instead.`,
      'messages',
    ),
  callWithoutResult: (ids) =>
    invalid(
      `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids.join(', ')}`,
      'messages',
    ),
  resultWithoutCall: () =>
    invalid(
      "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
      'messages',
    ),
  image: (_image, type) =>
    type === undefined
      ? openAiError(
          400,
          "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].",
          { param: 'messages', code: 'invalid_image_format' },
        )
      : undefined,
};

const invalid = (message: string, param: string): Refusal => openAiError(400, message, { param });

const onlyWithTools = (param: string): Refusal =>
  invalid(`Invalid value for '${param}': '${param}' is only allowed when 'tools' are specified.`, param);

/** The error for what a body cannot ask together. */
export function checkOpenAiTogether(body: JsonObject): Refusal | undefined {
  const { tools, parallel_tool_calls: parallel, response_format: format, messages } = body;
  if (parallel != null && tools === undefined) return onlyWithTools('parallel_tool_calls');
  if (!isObject(format) || format.type !== 'json_object' || /json/i.test(JSON.stringify(messages)))
    return undefined;
  const use = "to use 'response_format' of type 'json_object'";
  return invalid(`'messages' must contain the word 'json' in some form, ${use}.`, 'messages');
}

interface SchemaPlace {
  readonly param: string;
  readonly of: string;
}

/** A strict schema has no `oneOf`, and says of each of its objects that there are no other properties. */
function checkStrict(
  value: unknown,
  place: SchemaPlace,
  context: readonly string[] = [],
): Refusal | undefined {
  if (Array.isArray(value)) return firstRefusal(value, (item) => checkStrict(item, place, context));
  if (!isObject(value)) return undefined;
  const at = `Invalid schema for ${place.of}: In context=(${context.map((key) => `'${key}'`).join(', ')}),`;
  if ('oneOf' in value) return invalid(`${at} 'oneOf' is not permitted.`, place.param);
  if (value.type === 'object' && value.additionalProperties !== false) {
    return invalid(`${at} 'additionalProperties' is required to be supplied and to be false.`, place.param);
  }
  const maps = ['properties', '$defs', 'definitions'].flatMap((key) =>
    Object.entries((value[key] ?? {}) as JsonObject).map(([name, inner]) => ({ path: [key, name], inner })),
  );
  const others = ['items', 'anyOf', 'allOf'].map((key) => ({ path: [key], inner: value[key] }));
  return firstRefusal([...maps, ...others], ({ path, inner }) =>
    checkStrict(inner, place, [...context, ...path]),
  );
}
