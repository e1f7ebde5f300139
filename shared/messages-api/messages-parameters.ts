import type { ProviderId } from '../contracts/contract.js';
import { givenFields } from '../json/json.js';
import type { ModelParameters } from '../models/model-parameters.js';
import { findUnsupported, ignoredHints, takesParameter, takesValue } from '../models/provider-support.js';
import { checkSchemas } from '../models/schema-bounds.js';
import { type MessagesBody, RefusedBody } from './messages-body.js';
import type { OfferedTools, PlacedTool } from './offered-tools.js';

export interface ParametersContext {
  readonly provider: ProviderId;
  readonly model?: string | undefined;
  readonly tools: OfferedTools;
  /** The effort that the last system turn with one asks for. */
  readonly laterEffort: Effort | undefined;
}

export type Effort = NonNullable<ModelParameters['reasoningEffort']>;

const maxTools = 128;

/** The parameters of a body. Throws `RefusedBody` for what the provider cannot be asked for. */
export function readParameters(body: MessagesBody, context: ParametersContext): ModelParameters {
  const { provider, model, tools } = context;
  const offered = tools.list;
  if (offered.length > maxTools) throw new RefusedBody('/tools', `must declare at most ${maxTools} tools`);
  const { tool_choice: choice, stop_sequences: stop } = body;
  const isSingle = choice && choice.type !== 'none' && choice.disable_parallel_tool_use;
  const parameters: ModelParameters = givenFields({
    temperature: body.temperature,
    topP: body.top_p,
    topK: takesParameter(provider, 'topK', model) ? body.top_k : undefined,
    stop: stop?.length === 0 ? undefined : stop,
    reasoningEffort: effortOf(body, context),
    thinking: takesParameter(provider, 'thinking', model) ? thinkingOf(body) : undefined,
    tools: offered.length > 0 ? offered.map(({ tool }) => tool) : undefined,
    toolChoice: toolChoiceOf(body, tools),
    parallelToolCalls: isSingle && offered.length > 0 ? false : undefined,
    format: formatOf(body),
  });
  refuseSchemas(body, parameters, { provider, offered });
  return parameters;
}

/** The most tokens of a budget for thinking that count as each effort; a larger one counts as `xhigh`. */
const budgets: readonly [Effort, most: number][] = [
  ['low', 2048],
  ['medium', 8192],
  ['high', 32_000],
];

const isOff = ({ thinking }: MessagesBody): boolean =>
  thinking?.type === 'disabled' || thinking?.type === 'between_tools';

/** The effort that stands for no thinking; a provider without one is asked as if nothing was said of it. */
const offEffort = (provider: ProviderId): Effort | undefined =>
  (['none', 'minimal'] as const).find((effort) => takesValue(provider, 'reasoningEffort', effort));

function effortOf(body: MessagesBody, { provider, laterEffort }: ParametersContext): Effort | undefined {
  const off = isOff(body) ? offEffort(provider) : undefined;
  if (off) return off;
  const { thinking } = body;
  const budget = thinking?.type === 'enabled' ? thinking.budget_tokens : 0;
  const [byBudget] = budgets.find(([, most]) => budget <= most) ?? ['xhigh' as const];
  const effort = laterEffort ?? body.output_config?.effort ?? (budget > 0 ? byBudget : undefined);
  const isTooHigh = effort !== undefined && !takesValue(provider, 'reasoningEffort', effort);
  return isTooHigh ? 'high' : effort;
}

function thinkingOf({ thinking }: MessagesBody): ModelParameters['thinking'] {
  if (thinking?.type === 'enabled') return thinking.budget_tokens;
  return thinking?.type === 'adaptive' ? 'adaptive' : undefined;
}

function toolChoiceOf(
  { tool_choice: choice }: MessagesBody,
  tools: OfferedTools,
): ModelParameters['toolChoice'] {
  if (choice?.type === 'tool') {
    const name = tools.sentName(choice.name, '/tool_choice/name');
    if (tools.list.some(({ tool }) => tool.name === name)) return { name };
    throw new RefusedBody('/tool_choice/name', 'is not the name of one of the tools');
  }
  if (tools.list.length > 0) return choice?.type === 'any' ? 'required' : choice?.type;
  if (choice?.type === 'any')
    throw new RefusedBody('/tool_choice', 'must be none or auto: there are no tools');
  return undefined;
}

function formatOf({ output_config, output_format }: MessagesBody): ModelParameters['format'] {
  const format = output_config?.format ?? output_format;
  // Anthropic has no name for it.
  return format ? { type: 'json_schema', name: 'response', schema: format.schema } : undefined;
}

interface Asked {
  readonly provider: ProviderId;
  readonly offered: readonly PlacedTool[];
}

function refuseSchemas(body: MessagesBody, parameters: ModelParameters, { provider, offered }: Asked): void {
  const ofTools = offered.map(({ pointer }) => `${pointer}/input_schema`);
  const ofFormat = body.output_config?.format ? '/output_config/format/schema' : '/output_format/schema';
  const { format } = parameters;
  const schemas: unknown[] = offered.map(({ tool }) => tool.parameters);
  const tooLarge = checkSchemas(format?.type === 'json_schema' ? [...schemas, format.schema] : schemas);
  if (tooLarge) {
    const [place, ...path] = tooLarge.path;
    throw refusedAt([...ofTools, ofFormat][Number(place)] ?? '/tools', path, tooLarge.detail);
  }
  const { parameter, path = [], detail = '' } = findUnsupported(provider, parameters) ?? {};
  // In our parameters a schema stands at `tools`, a place and `parameters`, or at `format` and `schema`.
  if (parameter === 'tools') throw refusedAt(ofTools[Number(path[0])] ?? '/tools', path.slice(2), detail);
  if (parameter === 'format') throw refusedAt(ofFormat, path.slice(1), detail);
  if (parameter) throw refusedAt(`/${fieldOfHint(parameter)}`, path, detail);
}

/** The names in a schema are the caller's own. */
function refusedAt(pointer: string, path: readonly (string | number)[], detail: string): RefusedBody {
  const steps = path.map((step) => String(step).slice(0, 60).replaceAll('~', '~0').replaceAll('/', '~1'));
  return new RefusedBody([pointer, ...steps].join('/'), detail);
}

/** The fields of parameters that have another name here. */
const fieldNames: ReadonlyMap<string, string> = new Map([
  ['topP', 'top_p'],
  ['topK', 'top_k'],
  ['stop', 'stop_sequences'],
  ['reasoningEffort', 'output_config.effort'],
  ['toolChoice', 'tool_choice'],
  ['parallelToolCalls', 'tool_choice.disable_parallel_tool_use'],
  ['format', 'output_config.format'],
]);

/** The field of a hint, as this server names hints: `topP`, or with a detail `tools.strict`. */
export function fieldOfHint(name: string): string {
  const [parameter = '', ...detail] = name.split('.');
  return [fieldNames.get(parameter) ?? parameter, ...detail].join('.');
}

/** The known fields that are sent to no model of this provider, or not with their value. */
export const ignoredFields = (
  body: MessagesBody,
  provider: ProviderId,
  parameters: ModelParameters,
): string[] => [
  ...ignoredHints(provider, parameters).map(fieldOfHint),
  ...(typeof body.top_k === 'number' && parameters.topK === undefined ? ['top_k'] : []),
  ...(isOff(body) && offEffort(provider) === undefined ? ['thinking'] : []),
];
