import { isObject, type JsonObject } from '../../../shared/json/json.js';
import type { PartRules } from '../part-rules.js';
import { firstRefusal, type Refusal } from '../refusal.js';
import { schemasIn } from '../schemas.js';
import { invalid, openAiError } from './errors.js';

/**
 * OpenAI's rules for tools, formats and parts, as far as both wires have them. At Responses a tool is strict unless it
 * says otherwise: https://developers.openai.com/api/docs/guides/migrate-to-responses; ids: AnswerDotAI/fastllm#45.
 */
const rulesOf = (isChat: boolean): Omit<PartRules, 'callWithoutResult' | 'resultWithoutCall'> => ({
  refuse: (words) => invalid(words, isChat ? 'messages' : 'input'),
  toolName: /^[a-zA-Z0-9_-]{1,64}$/,
  toolNamed(_name, index) {
    const param = `${placeOf(index, isChat)}.name`;
    const pattern = "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.";
    return invalid(`Invalid '${param}': string does not match pattern. ${pattern}`, param);
  },
  noObject({ name, parameters }, index) {
    const type = typeof parameters?.type === 'string' ? parameters.type : 'None';
    const why = `schema must be a JSON Schema of 'type: "object"', got 'type: "${type}"'.`;
    return invalid(`Invalid schema for function '${name}': ${why}`, `${placeOf(index, isChat)}.parameters`);
  },
  schema(schema, { strict, name, index }) {
    const isTool = index !== undefined;
    if (!(strict ?? (isTool && !isChat))) return undefined;
    const format = isChat ? 'response_format' : 'text.format';
    const param = isTool ? `${placeOf(index, isChat)}.parameters` : format;
    return checkStrict(schema, { param, of: `${isTool ? 'function' : 'response_format'} '${name}'`, isChat });
  },
  choiceWithoutTools: () => onlyWithTools('tool_choice'),
  notOffered: (name) => invalid(`Tool choice '${name}' not found in 'tools' parameter.`, 'tool_choice'),
  callId: isChat ? /^.{1,40}$/s : /^.{1,64}$/s,
  callNamed({ length }) {
    const [param, most] = isChat ? ['messages[].tool_calls[].id', 40] : ['input[].call_id', 64];
    return `Invalid '${param}': string too long. Expected a string with maximum length ${most}, but got a string with length ${length} instead.`;
  },
  image: (_image, type) =>
    type === undefined
      ? openAiError(
          400,
          "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].",
          { param: isChat ? 'messages' : 'input', code: 'invalid_image_format' },
        )
      : undefined,
});

const placeOf = (index: number, isChat: boolean) => `tools[${index}]${isChat ? '.function' : ''}`;

/** The rules of Chat Completions. */
export const openAiPartRules: PartRules = {
  ...rulesOf(true),
  callWithoutResult: (ids) =>
    `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids.join(', ')}`,
  resultWithoutCall: () =>
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
};

/** The rules of Responses. */
export const responsesPartRules: PartRules = {
  ...rulesOf(false),
  // https://github.com/router-for-me/CLIProxyAPI/issues/2368; the provider takes other items between the two.
  callWithoutResult: ([id]) => `No tool output found for function call ${id}.`,
  // https://github.com/continuedev/continue/issues/10092
  resultWithoutCall: (id) => `No tool call found for function call output with call_id ${id}.`,
};

/** The error for a parameter that is nothing without tools. */
export const onlyWithTools = (param: string): Refusal =>
  invalid(`Invalid value for '${param}': '${param}' is only allowed when 'tools' are specified.`, param);

/**
 * A strict schema has no `oneOf`, and says of each of its objects that there are no other properties. At Responses each
 * of them has to be required (https://developers.openai.com/api/docs/guides/structured-outputs).
 */
function checkStrict(
  root: JsonObject,
  { param, of, isChat }: { param: string; of: string; isChat: boolean },
): Refusal | undefined {
  const closed = "'additionalProperties' is required to be supplied and to be false.";
  const whole = "'required' is required to be supplied and to be an array including every key in properties.";
  return firstRefusal(schemasIn(root), ({ schema, path }) => {
    if (!isObject(schema)) return undefined;
    const { type, additionalProperties, properties = {}, required } = schema;
    const refuse = (words: string) =>
      invalid(`Invalid schema for ${of}: In context=(${at}), ${words}`, param);
    const at = path.map((key) => `'${key}'`).join(', ');
    if ('oneOf' in schema) return refuse("'oneOf' is not permitted.");
    if (type !== 'object') return undefined;
    if (additionalProperties !== false) return refuse(closed);
    const left = Object.keys(Object(properties)).find((name) => ![required].flat().includes(name));
    return isChat || left === undefined ? undefined : refuse(`${whole} Missing '${left}'.`);
  });
}
