import { createHash } from 'node:crypto';
import { type ImagePart, type ImageType, type Part, partsOf, type Turn } from '../../shared/conversation.js';
import {
  type CallParameters,
  type Fault,
  firstFault,
  type OfferedTool,
  type PartRules,
  type Path,
} from './wire-format.js';

/** The first rule that a call breaks whose body can be read. */
export function findPartFault(
  rules: PartRules,
  turns: readonly Turn[],
  asked: CallParameters,
): Fault | undefined {
  const spoken = turns.filter(({ role }) => role !== 'system').map(partsOf);
  const hasCalls = spoken.flat().some(({ type }) => type === 'tool_call' || type === 'tool_result');
  const { places, has } = rules;
  if (hasCalls && asked.tools === undefined && has.includes('tools of calls'))
    return [places.choice, 'tools beside calls and results'];
  return (
    turnsFault(rules, turns) ??
    firstFault(asked.tools ?? [], (tool, index) => toolFault(rules, tool, { index, asked })) ??
    choiceFault(rules, asked) ??
    formatFault(rules, asked) ??
    firstFault(spoken, (parts, turn) =>
      firstFault(parts, (part, place) => partFault(rules, part, places.part(turn, place))),
    ) ??
    (hasCalls ? orderFault(rules, spoken) : undefined)
  );
}

/** There are turns, with texts in them, and in the order of the provider. */
function turnsFault({ has, places: { turns: place } }: PartRules, turns: readonly Turn[]): Fault | undefined {
  const texts = turns.flatMap(partsOf).flatMap((part) => (part.type === 'text' ? [part.text] : []));
  if (has.includes('words in texts') && texts.some((text) => text.trim() === ''))
    return [place, 'texts that are not blank'];
  if (has.includes('characters in texts') && texts.includes('')) return [place, 'texts that are not empty'];
  const spoken = turns.filter(({ role }) => role !== 'system');
  if (turns.length === 0) return [place, 'a turn'];
  if (has.includes('the user first') && spoken[0]?.role !== 'user')
    return [place, 'a turn of the user first'];
  if (has.includes('the user last') && spoken.at(-1)?.role !== 'user' && !isPaused(spoken.at(-1)))
    return [place, 'a turn of the user at the end'];
  const isRepeated = spoken.some(({ role }, index) => {
    const before = spoken[index - 1];
    return role === before?.role && !(has.includes('results alone') && idsOf(partsOf(before)).length > 0);
  });
  return has.includes('alternating roles') && isRepeated ? [place, 'roles that alternate'] : undefined;
}

/** A reply that ends in the provider's own work goes on: https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons */
function isPaused(turn: Turn | undefined): boolean {
  const last = turn && partsOf(turn).at(-1);
  return last?.type === 'opaque' && /"type":"(?:server_tool_use|\w+_tool_result)"/.test(last.data);
}

function toolFault(
  { toolName, has, places, schema }: PartRules,
  { name, description, parameters, strict }: OfferedTool,
  { index, asked: { tools = [] } }: { index: number; asked: CallParameters },
): Fault | undefined {
  const at = (...path: Path) => [...places.tool(index), ...path];
  if (!toolName.test(name)) return [at('name'), `a text like ${toolName}`];
  if (has.includes('one tool of a name') && tools.findIndex((tool) => tool.name === name) < index)
    return [at('name'), 'another name than that of an earlier tool'];
  if (has.includes('described tools') && description === '') return [at('description'), 'a text'];
  if (parameters === undefined) return undefined;
  if (parameters.type !== 'object') return [at(...places.parameters), 'a schema of the type object'];
  const [path, expected] = schema(parameters, { strict, index }) ?? [];
  return path && expected ? [at(...places.parameters, ...path), expected] : undefined;
}

function choiceFault(
  { has, places }: PartRules,
  { tools = [], toolChoice: choice }: CallParameters,
): Fault | undefined {
  if (choice === undefined) return undefined;
  if (has.includes('tools of a choice') && tools.length === 0) return [places.choice, 'tools beside it'];
  const isOffered = typeof choice !== 'object' || tools.some(({ name }) => name === choice.name);
  return has.includes('an offered choice') && !isOffered ? [places.choice, 'an offered tool'] : undefined;
}

function formatFault({ places, schema }: PartRules, { format }: CallParameters): Fault | undefined {
  const [path, expected] = (format?.schema && schema(format.schema, { strict: format.strict })) ?? [];
  return path && expected ? [[...places.format, ...path], expected] : undefined;
}

function partFault({ image, callId }: PartRules, part: Part, place: Path): Fault | undefined {
  if (part.type === 'image' && 'data' in part) {
    const { data = '', mediaType } = part;
    const expected = image?.(data, mediaType, imageTypeOf(data));
    return expected === undefined ? undefined : [place, expected];
  }
  const id = part.type === 'tool_call' ? part.id : part.type === 'tool_result' ? part.callId : undefined;
  return id === undefined || callId?.test(id) !== false ? undefined : [place, `an id like ${callId}`];
}

const callsIn = (parts: readonly Part[] = []) =>
  parts.flatMap((part) => (part.type === 'tool_call' ? [part.id] : []));

const idsOf = (results: readonly Part[]) =>
  results.flatMap((part) => (part.type === 'tool_result' ? [part.callId] : []));

/** The results before all else in a turn. */
function resultsIn(parts: readonly Part[] = []): string[] {
  const end = parts.findIndex(({ type }) => type !== 'tool_result');
  return idsOf(end === -1 ? parts : parts.slice(0, end));
}

/** Each result stands first in the turn after its call's, and each call has one. */
function orderFault({ has, places }: PartRules, spoken: readonly (readonly Part[])[]): Fault | undefined {
  // The work that is not finished began with the user's last words.
  const begin = spoken.findLastIndex(
    (parts) => parts.at(-1)?.type !== 'tool_result' && callsIn(parts).length === 0,
  );
  return firstFault(spoken, (parts, turn): Fault | undefined => {
    const asked = callsIn(spoken[turn - 1]);
    const results = resultsIn(parts);
    const total = idsOf(parts).length;
    const wrong = results.findIndex((id, place) => !asked.includes(id) || results.indexOf(id) < place);
    const part = wrong === -1 && total > results.length ? results.length : wrong;
    if (part !== -1) return [places.part(turn, part), 'the one result of a call in the turn before'];
    const answered = resultsIn(spoken[turn + 1]);
    const open = callsIn(parts).findIndex((id) => !answered.includes(id));
    if (open !== -1) return [places.part(turn, open), 'a result of this call in the next turn'];
    if (total > 0 && total < parts.length && has.includes('results alone'))
      return [places.part(turn, total), 'results alone'];
    const first = parts.findIndex(({ type }) => type === 'tool_call');
    const isUnsigned = turn > begin && first !== -1 && parts[first - 1]?.type !== 'opaque';
    return isUnsigned && has.includes('signed calls')
      ? [places.part(turn, first), 'a thought_signature']
      : undefined;
  });
}

/** The first bytes of each type of image, in hexadecimal. */
const signatures: [ImageType, RegExp][] = [
  ['image/png', /^89504e470d0a1a0a/],
  ['image/jpeg', /^ffd8ff/],
  ['image/gif', /^474946383[79]61/],
  ['image/webp', /^52494646.{8}57454250/],
];

/** The type of an image by its bytes, which are base64; undefined if they are no image. */
export function imageTypeOf(data: string): ImageType | undefined {
  const head = Buffer.from(data.slice(0, 32), 'base64').toString('hex');
  return signatures.find(([, beginning]) => beginning.test(head))?.[0];
}

/** An image that came with the call, of the type that the call names. */
export function readImage(mediaType: string, data: string): ImagePart {
  const bytes = Buffer.from(data, 'base64');
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { type: 'image', mediaType: mediaType as ImageType, sha256, bytes: bytes.length, data };
}
