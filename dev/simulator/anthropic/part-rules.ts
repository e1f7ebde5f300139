import { claudeSchemaFault } from '../claude.js';
import type { PartRules, Place } from '../part-rules.js';
import { invalid } from './errors.js';

const maxImageLength = 10 * 1024 * 1024;
const at = ({ turn, part }: Place): string => `messages.${turn}.content.${part}`;

/** Anthropic's rules for tools, formats and parts. */
export const anthropicPartRules: PartRules = {
  refuse: invalid,
  toolName: /^[a-zA-Z0-9_-]{1,128}$/,
  toolNamed: (_name, index) =>
    `tools.${index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`,
  sameName: () => 'tools: Tool names must be unique.',
  noObject: ({ parameters }, index) =>
    `tools.${index}.custom.input_schema.type: ${parameters?.type === undefined ? 'Field required' : "Input should be 'object'"}`,
  schema: claudeSchemaFault,
  choiceWithoutTools: () => 'tool_choice may only be specified while providing tools.',
  notOffered: (name) => `Tool '${name}' not found in provided tools`,
  callId: /^[a-zA-Z0-9_-]+$/,
  callNamed: (_id, place) => `${at(place)}.id: String should match pattern '^[a-zA-Z0-9_-]+$'`,
  callWithoutResult: (ids, turn) =>
    `messages.${turn}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
  resultWithoutCall: (id, place) =>
    `${at(place)}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
  image({ data, mediaType }, type, place) {
    const source = `${at(place)}.image.source.base64`;
    if (data.length > maxImageLength)
      return `${source}: image exceeds 10 MB maximum: ${data.length} bytes > ${maxImageLength} bytes`;
    if (type === undefined) return 'Could not process image';
    if (type === mediaType) return undefined;
    return `${source}.data: The image was specified using the ${mediaType} media type, but the image appears to be a ${type} image`;
  },
};
