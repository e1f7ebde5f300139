import { claudeSchemaFault } from '../claude.js';
import type { PartRules, Place } from '../part-rules.js';
import { constraint, modelError, validationException } from './errors.js';

const maxImageLength = 5 * 1024 * 1024;
const at = ({ turn, part }: Place): string => `messages.${turn}.content.${part}`;
const pattern = 'satisfy regular expression pattern: [a-zA-Z0-9_-]{1,64}';
const member = (index: number, field: string): string =>
  `toolConfig.tools.${index + 1}.member.toolSpec.${field}`;

/** Converse's rules for tools, formats and parts, and those of Claude. */
export const bedrockPartRules: PartRules = {
  refuse: validationException,
  toolName: /^[a-zA-Z0-9_-]{1,64}$/,
  toolNamed: (name, index) => constraint(`Value '${name}' at '${member(index, 'name')}'`, pattern),
  withoutDescription: (index) =>
    constraint(`Value '' at '${member(index, 'description')}'`, 'have length greater than or equal to 1'),
  noObject: (_tool, index) =>
    `The value at toolConfig.tools.${index}.toolSpec.inputSchema.json.type must be one of the following: object.`,
  schema(schema, of) {
    const fault = claudeSchemaFault(schema, of);
    return fault && modelError(fault);
  },
  callsWithoutTools: () =>
    'The toolConfig field must be defined when using toolUse and toolResult content blocks.',
  callId: /^[a-zA-Z0-9_-]{1,64}$/,
  callNamed: (id, place) => constraint(`Value '${id}' at '${at(place)}.toolUseId'`, pattern),
  callWithoutResult: (ids, turn) =>
    `Expected toolResult blocks at messages.${turn + 1}.content for the following Ids: ${ids.join(', ')}`,
  resultWithoutCall: (_id, { turn }) =>
    `The number of toolResult blocks at messages.${turn}.content exceeds the number of toolUse blocks of previous turn.`,
  image({ data }, _type, place) {
    if (data.length <= maxImageLength) return undefined;
    const size = `image exceeds 5 MB maximum: ${data.length} bytes > ${maxImageLength} bytes`;
    return modelError(`${at(place)}.image.source.base64: ${size}`);
  },
};
