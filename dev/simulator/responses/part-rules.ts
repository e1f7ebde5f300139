import { invalid } from '../openai/errors.js';
import { checkStrict, openAiPartRules } from '../openai/part-rules.js';
import type { PartRules } from '../part-rules.js';

/** The rules of Responses for tools, formats and parts. */
export const responsesPartRules: PartRules = {
  ...openAiPartRules,
  refuse: (words) => invalid(words, 'input'),
  toolNamed(_name, index) {
    const pattern = "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.";
    const param = `tools[${index}].name`;
    return invalid(`Invalid '${param}': string does not match pattern. ${pattern}`, param, 'invalid_value');
  },
  noObject({ name, parameters }, index) {
    const type = typeof parameters?.type === 'string' ? parameters.type : 'None';
    const why = `schema must be a JSON Schema of 'type: "object"', got 'type: "${type}"'.`;
    const param = `tools[${index}].parameters`;
    return invalid(`Invalid schema for function '${name}': ${why}`, param, 'invalid_function_parameters');
  },
  schema(schema, { strict, name, index }) {
    if (index === undefined)
      return strict === true
        ? checkStrict(schema, { param: 'text.format.schema', of: `response_format '${name}'`, isWhole: true })
        : undefined;
    const param = `tools[${index}].parameters`;
    return strict === false
      ? undefined
      : checkStrict(schema, { param, of: `function '${name}'`, isWhole: true });
  },
  // https://github.com/AnswerDotAI/fastllm/issues/45
  callId: /^.{1,64}$/s,
  callNamed: (id) =>
    invalid(
      `Invalid 'input[].call_id': string too long. Expected a string with maximum length 64, but got a string with length ${id.length} instead.`,
      'input',
      'string_above_max_length',
    ),
  // https://github.com/router-for-me/CLIProxyAPI/issues/2368; the provider also takes what stands between the two.
  callWithoutResult: ([id]) => `No tool output found for function call ${id}.`,
  // https://github.com/continuedev/continue/issues/10092
  resultWithoutCall: (id) => `No tool call found for function call output with call_id ${id}.`,
  image: (_image, type) =>
    type === undefined
      ? invalid(
          'The image data you provided does not represent a valid image. Please check your input and try again.',
          'input',
          'invalid_value',
        )
      : undefined,
};
