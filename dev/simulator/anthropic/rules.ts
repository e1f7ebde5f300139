import { isObject } from '../../../shared/json/json.js';
import { findMarkFault } from '../claude.js';
import { imageTypeOf } from '../part-rules.js';
import { dotted, firstFault, type Path, type Refusal, type RequestHead } from '../wire-format.js';
import { type AnthropicBlock, type AnthropicBody, blocksIn } from './body.js';
import { invalid } from './errors.js';

/**
 * The fields that need one of these values of `anthropic-beta`: those that the types in `resources/beta/messages` of
 * Anthropic's SDK have and those in `resources/messages` do not; its `AnthropicBeta` lists the values. `defer_loading`
 * is in both. https://platform.claude.com/docs/en/build-with-claude/context-editing, and beside it `compaction`,
 * `task-budgets` and `refusals-and-fallback`; https://docs.anthropic.com/en/docs/agents-and-tools/mcp-connector. The
 * one for the binding is in the words of `claude.ts`.
 */
const betaFields: readonly [field: string, betas: readonly string[]][] = [
  ['context_management', ['context-management-2025-06-27', 'compact-2026-01-12']],
  ['mcp_servers', ['mcp-client-2025-04-04', 'mcp-client-2025-11-20', 'mcp-client-2026-09-15']],
  ['fallbacks', ['server-side-fallback-2026-06-01', 'server-side-fallback-2026-07-01']],
  ['thinking.block_binding', ['thinking-binding-controls-2026-08-01']],
  ['output_config.task_budget', ['task-budgets-2026-03-13']],
];

/** The value for a mark's `scope`: https://github.com/QuantumNous/new-api/issues/2975 */
const scopeBeta = 'prompt-caching-scope-2026-01-05';
const [maxImageLength, maxMedia] = [10 * 1024 * 1024, 100];

/** The values of `anthropic-beta`. */
export const betasOf = (headers: RequestHead['headers']): string[] =>
  [headers['anthropic-beta'] ?? []].flat().flatMap((value) => value.split(/\s*,\s*/));

/** The error for a body that breaks a rule of Messages, in Anthropic's own words. */
export function checkMessagesBody(body: AnthropicBody, head: RequestHead): Refusal | undefined {
  const betas = betasOf(head.headers);
  const blocks = [
    ...(body.tools ?? []).map((block, index) => ({ at: ['tools', index, 'custom'], block: Object(block) })),
    ...blocksIn(['system'], body.system),
    ...body.messages.flatMap(({ content }, index) => blocksIn(['messages', index, 'content'], content)),
  ];
  const words =
    findBetaFault(body, betas) ??
    findBudgetFault(body) ??
    findMarkFault(blocks.map(({ block }) => block.cache_control)) ??
    firstFault(blocks, ({ at, block }) => findFieldFault(at, block, betas)) ??
    findMediaFault(blocks.map(({ block }) => block.type)) ??
    firstFault(blocks, ({ at, block }) => findSourceFault(at, block)) ??
    firstFault(blocks, ({ block }) => findReferenceFault(body, block));
  return words === undefined ? undefined : invalid(words);
}

function findBetaFault(body: AnthropicBody, betas: readonly string[]): string | undefined {
  const isThere = (field: string) =>
    field.split('.').reduce<unknown>((value, name) => Object(value)[name], body) != null;
  const [field] =
    betaFields.find(([name, any]) => isThere(name) && !any.some((beta) => betas.includes(beta))) ?? [];
  // https://github.com/anthropics/claude-code/issues/21612
  return field && `${field}: Extra inputs are not permitted`;
}

/** https://github.com/themaximalist/llm.js/issues/30, https://github.com/liuw1535/antigravity2api-nodejs/issues/149 */
function findBudgetFault({ thinking: { budget_tokens: budget } = {}, max_tokens: limit }: AnthropicBody) {
  if (budget === undefined) return undefined;
  if (budget < 1024) return 'thinking.enabled.budget_tokens: Input should be greater than or equal to 1024';
  const page =
    'https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size';
  const why = '`max_tokens` must be greater than `thinking.budget_tokens`.';
  return budget < limit ? undefined : `${why} Please consult our documentation at ${page}`;
}

/** https://github.com/horselock/claude-code-proxy/pull/14, https://github.com/Wei-Shaw/sub2api/issues/225 */
function findFieldFault(at: Path, { type, cache_control: mark }: AnthropicBlock, betas: readonly string[]) {
  const place = `${dotted(at)}.cache_control`;
  if (!isObject(mark)) return undefined;
  if (type === 'thinking' || type === 'redacted_thinking') return `${place}: Extra inputs are not permitted`;
  const known = ['type', 'ttl', ...(betas.includes(scopeBeta) ? ['scope'] : [])];
  const other = Object.keys(mark).find((name) => !known.includes(name));
  return other && `${place}.ephemeral.${other}: Extra inputs are not permitted`;
}

/** https://github.com/anthropics/claude-code/issues/19822; a page of each document is counted. */
function findMediaFault(types: readonly (string | undefined)[]): string | undefined {
  const [pages, images] = ['document', 'image'].map(
    (wanted) => types.filter((type) => type === wanted).length,
  );
  const total = Number(pages) + Number(images);
  return total > maxMedia
    ? `Too much media: ${pages} document pages + ${images} images > ${maxMedia}`
    : undefined;
}

/**
 * https://github.com/anthropics/claude-code/issues/19631 (the size), 8646 (what is no image), 5174 (what is no PDF),
 * https://github.com/vybestack/llxprt-code/issues/2130 (another type)
 */
function findSourceFault(at: Path, { type, source }: AnthropicBlock): string | undefined {
  const { media_type: named, data } = source ?? {};
  if (data === undefined) return undefined;
  if (type === 'document' && named === 'application/pdf' && !data.startsWith('JVBERi'))
    return `${dotted(at.slice(0, -1))}.pdf.source.base64.data: The PDF specified was not valid.`;
  if (type !== 'image') return undefined;
  const place = `${dotted(at)}.source.base64`;
  if (data.length > maxImageLength)
    return `${place}: image exceeds 10 MB maximum: ${data.length} bytes > ${maxImageLength} bytes`;
  const seen = imageTypeOf(data);
  if (seen === undefined) return 'Could not process image';
  const why = `The image was specified using the ${named} media type`;
  return seen === named ? undefined : `${place}: ${why}, but the image appears to be a ${seen} image`;
}

/** https://github.com/code-yeongyu/senpi/pull/437 */
function findReferenceFault({ tools = [] }: AnthropicBody, { tool_name: named }: AnthropicBlock) {
  if (named === undefined || tools.some(({ name }) => name === named)) return undefined;
  return `Tool reference '${named}' not found in available tools`;
}
