import { isObject, type JsonObject } from '../../../shared/json.js';
import type { PartRules } from '../part-rules.js';
import { firstRefusal, type Refusal } from '../refusal.js';
import { schemasIn } from '../schemas.js';
import type { OfferedTool } from '../wire-format.js';
import { invalid, openAiError } from './errors.js';

/** Where a wire has the conversation, and what stands between a tool and its fields. */
interface Names {
  readonly messages: string;
  readonly tool: string;
}

/** OpenAI's rules for tools, formats and parts, as far as they are the same on both wires. */
export const openAiRulesOf = ({ messages, tool }: Names) => ({
  refuse: (words: string) => invalid(words, messages),
  toolName: /^[a-zA-Z0-9_-]{1,64}$/,
  toolNamed(_name: string, index: number) {
    const param = `tools[${index}]${tool}.name`;
    const pattern = "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.";
    return invalid(`Invalid '${param}': string does not match pattern. ${pattern}`, param);
  },
  noObject({ name, parameters }: OfferedTool, index: number) {
    const type = typeof parameters?.type === 'string' ? parameters.type : 'None';
    const why = `schema must be a JSON Schema of 'type: "object"', got 'type: "${type}"'.`;
    return invalid(`Invalid schema for function '${name}': ${why}`, `tools[${index}]${tool}.parameters`);
  },
  choiceWithoutTools: () => onlyWithTools('tool_choice'),
  notOffered: (name: string) =>
    invalid(`Tool choice '${name}' not found in 'tools' parameter.`, 'tool_choice'),
  image: (_image: unknown, type: string | undefined) =>
    type === undefined
      ? openAiError(
          400,
          "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].",
          { param: messages, code: 'invalid_image_format' },
        )
      : undefined,
});

/** The rules of Chat Completions. */
export const openAiPartRules: PartRules = {
  ...openAiRulesOf({ messages: 'messages', tool: '.function' }),
  schema(schema, { strict, name, index }) {
    if (strict !== true) return undefined;
    return index === undefined
      ? checkStrict(schema, { param: 'response_format', of: `response_format '${name}'` })
      : checkStrict(schema, { param: `tools[${index}].function.parameters`, of: `function '${name}'` });
  },
  callId: /^.{1,40}$/s,
  callNamed: (id) =>
    `Invalid 'messages[].tool_calls[].id': string too long. Expected a string with maximum length 40, but got a string with length ${id.length} instead.`,
  callWithoutResult: (ids) =>
    `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids.join(', ')}`,
  resultWithoutCall: () =>
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
};

/** The error for a parameter that is nothing without tools. */
export const onlyWithTools = (param: string): Refusal =>
  invalid(`Invalid value for '${param}': '${param}' is only allowed when 'tools' are specified.`, param);

/**
 * A strict schema has no `oneOf`, and says of each of its objects that there are no other properties. If `isWhole` each
 * of them has to be required (https://developers.openai.com/api/docs/guides/structured-outputs).
 */
export function checkStrict(
  root: JsonObject,
  { param, of, isWhole = false }: { param: string; of: string; isWhole?: boolean },
): Refusal | undefined {
  return firstRefusal(schemasIn(root), ({ schema, path }) => {
    const { type, additionalProperties, properties, required }: JsonObject = isObject(schema) ? schema : {};
    const at = `Invalid schema for ${of}: In context=(${path.map((key) => `'${key}'`).join(', ')}),`;
    if (isObject(schema) && 'oneOf' in schema) return invalid(`${at} 'oneOf' is not permitted.`, param);
    if (type !== 'object') return undefined;
    if (additionalProperties !== false)
      return invalid(`${at} 'additionalProperties' is required to be supplied and to be false.`, param);
    const names = isWhole ? Object.keys(properties ?? {}) : [];
    const left = names.find((name) => !Array.isArray(required) || !required.includes(name));
    if (left === undefined) return undefined;
    const must =
      "'required' is required to be supplied and to be an array including every key in properties.";
    return invalid(`${at} ${must} Missing '${left}'.`, param);
  });
}
