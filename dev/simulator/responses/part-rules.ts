import { invalid } from '../openai/errors.js';
import { checkStrict, openAiRulesOf } from '../openai/part-rules.js';
import type { PartRules } from '../part-rules.js';

/** The rules of Responses for tools, formats and parts. */
export const responsesPartRules: PartRules = {
  ...openAiRulesOf({ messages: 'input', tool: '' }),
  // A tool is strict unless it says otherwise: https://developers.openai.com/api/docs/guides/migrate-to-responses
  schema(schema, { strict = null, name, index }) {
    const isTool = index !== undefined;
    if (isTool ? strict === false : strict !== true) return undefined;
    const [param, of] = isTool
      ? [`tools[${index}].parameters`, 'function']
      : ['text.format', 'response_format'];
    return checkStrict(schema, { param, of: `${of} '${name}'`, isWhole: true });
  },
  // https://github.com/AnswerDotAI/fastllm/issues/45
  callId: /^.{1,64}$/s,
  callNamed: ({ length }) =>
    invalid(
      `Invalid 'input[].call_id': string too long. Expected a string with maximum length 64, but got a string with length ${length} instead.`,
      'input',
      'string_above_max_length',
    ),
  // https://github.com/router-for-me/CLIProxyAPI/issues/2368; the provider takes other items between the two.
  callWithoutResult: ([id]) => `No tool output found for function call ${id}.`,
  // https://github.com/continuedev/continue/issues/10092
  resultWithoutCall: (id) => `No tool call found for function call output with call_id ${id}.`,
};
