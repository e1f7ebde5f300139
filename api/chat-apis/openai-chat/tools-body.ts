import { z } from 'zod';
import type { Failure } from '../../../shared/failures.js';
import { givenFields, isObject } from '../../../shared/json/json.js';
import {
  type JsonSchema,
  type ReplyFormat,
  type Tool,
  type ToolChoice,
  toolSchema,
} from '../../../shared/models/model-parameters.js';
import { checkSchemas } from '../../../shared/models/schema-bounds.js';
import { invalid } from '../../../shared/validation.js';
import { pointerStep } from '../../http/query.js';

/** The tools of `POST /v1/chat/completions`, and the form of its reply. */

const { name } = toolSchema.shape;
/** Left as it was sent: `checkSchemas` reads what it holds. */
const schema = z.unknown().refine(isObject, 'must be an object').meta({ type: 'object' });

const described = { name, description: z.string().nullish(), strict: z.boolean().nullish() };

const unsupportedKinds: ReadonlySet<unknown> = new Set(['custom', 'allowed_tools']);
const functionType = z.literal('function', {
  error: ({ input }) =>
    unsupportedKinds.has(input) ? `must be function: ${input} is not supported` : 'must be function',
});

const tool = z.object({
  type: functionType,
  function: z.object({ ...described, parameters: schema.nullish() }),
});

const replyFormat = z.discriminatedUnion(
  'type',
  [
    z.object({ type: z.literal('text') }),
    z.object({ type: z.literal('json_object') }),
    z.object({ type: z.literal('json_schema'), json_schema: z.object({ ...described, schema }) }),
  ],
  {
    error: ({ input }) =>
      typeof input === 'object' && input ? 'must be text, json_object or json_schema' : undefined,
  },
);

/** The most tools of a request; more are refused before they are read. */
export const maxTools = 128;

export const toolFields = {
  tools: z.array(tool).max(maxTools).nullish(),
  tool_choice: z
    .union(
      [z.enum(['none', 'auto', 'required']), z.object({ type: functionType, function: z.object({ name }) })],
      {
        error: 'must be none, auto, required or a function',
      },
    )
    .nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  response_format: replyFormat.nullish(),
};

type Fields = z.output<z.ZodObject<typeof toolFields>>;

/** Reads the fields; what changes nothing is left out. Throws `invalid_request`. */
export function readTools(fields: Fields) {
  const tools = (fields.tools ?? []).map(toTool);
  const names = new Set<string>();
  for (const [place, { name }] of tools.entries()) {
    if (names.has(name)) throw invalid(`/tools/${place}/function/name`, 'is the name of another tool');
    names.add(name);
  }
  const format = readFormat(fields.response_format);
  refuseSchemas(tools, format);
  return {
    tools: tools.length > 0 ? tools : undefined,
    toolChoice: readChoice(fields.tool_choice, names),
    parallelToolCalls: tools.length > 0 && fields.parallel_tool_calls === false ? false : undefined,
    format,
  };
}

type Path = readonly (string | number)[];

/** Where the body has what is at this path of a tool, and of the format. */
export const inTool = (place: number, path: Path): Path => ['tools', place, 'function', ...path];
export const inFormat = (path: Path): Path => ['response_format', 'json_schema', ...path];

/** For a place in a schema; the names that its path has of the caller's are shortened. */
export const invalidSchema = (path: Path, detail: string): Failure =>
  invalid(path.map((step) => `/${pointerStep(String(step))}`).join(''), detail);

/** Checks the bounds that hold for all schemas together. */
function refuseSchemas(tools: readonly Tool[], format: ReplyFormat | undefined): void {
  const placed = [
    ...tools.map(({ parameters }, place) => ({ schema: parameters, path: inTool(place, ['parameters']) })),
    { schema: format?.type === 'json_schema' ? format.schema : undefined, path: inFormat(['schema']) },
  ].filter((each): each is { schema: JsonSchema; path: Path } => each.schema !== undefined);
  const error = checkSchemas(placed.map(({ schema }) => schema));
  if (error === undefined) return;
  const [place, ...path] = error.path;
  throw invalidSchema([...(placed[Number(place)]?.path ?? []), ...path], error.detail);
}

/** A tool without the fields that are null, as if they were absent. */
const toTool = ({ function: { name, ...given } }: z.output<typeof tool>): Tool => ({
  name,
  ...givenFields(given),
});

function readChoice(choice: Fields['tool_choice'], offered: ReadonlySet<string>): ToolChoice | undefined {
  if (typeof choice === 'object' && choice !== null) {
    const { name } = choice.function;
    if (offered.has(name)) return { name };
    throw invalid('/tool_choice/function/name', 'is not the name of one of the tools');
  }
  if (offered.size > 0) return choice ?? undefined;
  if (choice === 'required') throw invalid('/tool_choice', 'must be none or auto: there are no tools');
  return undefined;
}

function readFormat(format: Fields['response_format']): ReplyFormat | undefined {
  if (format === undefined || format === null || format.type === 'text') return undefined;
  if (format.type === 'json_object') return { type: 'json_object' };
  const { name, schema, ...given } = format.json_schema;
  return { type: 'json_schema', name, schema, ...givenFields(given) };
}
