import { createHash } from 'node:crypto';
import type { ProviderId } from '../contracts/contract.js';
import { type CacheTtl } from '../conversation.js';
import { givenFields } from '../json/json.js';
import type { Tool } from '../models/model-parameters.js';
import { providerModels } from '../models/provider-models.js';
import { type CacheControl, RefusedBody, type ToolBody } from './messages-body.js';

/** Anthropic takes longer names, and other characters. */
const fitting = /^[A-Za-z0-9_-]{1,64}$/;

/** A name that all providers take: 51 characters at most, `_`, and 12 of the name's digest. */
function shorten(name: string): string {
  const head = name
    .slice(0, 51)
    .replace(/[^A-Za-z0-9_-]/g, '_')
    .replace(/^[^A-Za-z_]/, '_');
  return `${head}_${createHash('sha256').update(name).digest('base64url').slice(0, 12)}`;
}

/** A tool as it is sent, and where the body has it. */
export interface PlacedTool {
  readonly tool: Tool;
  readonly pointer: string;
}

export interface OfferedToolsOptions {
  readonly provider: ProviderId;
  readonly cacheOf: (mark: CacheControl) => CacheTtl | undefined;
  readonly toText: (value: unknown) => string;
}

/**
 * The tools that the model may call, as of the end of the conversation: deferred ones from the first result on that
 * names them, and those that a system turn adds, without those that one has taken away.
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool
 * https://platform.claude.com/docs/en/build-with-claude/preserved-thinking/change-tools-or-instructions
 */
export class OfferedTools {
  readonly #declared = new Map<string, PlacedTool>();
  /** In the order in which they came, so that a conversation that goes on begins with the same tools. */
  readonly #offered = new Set<string>();
  readonly #described = new Set<string>();
  /** By the names that are sent. */
  readonly #originals = new Map<string, string>();

  constructor(
    tools: readonly ToolBody[],
    private readonly options: OfferedToolsOptions,
  ) {
    for (const [place, tool] of tools.entries()) {
      const pointer = `/tools/${place}`;
      if (this.#declared.has(tool.name))
        throw new RefusedBody(`${pointer}/name`, 'is the name of another tool');
      this.#declare(tool, pointer);
      if (!tool.defer_loading) this.#offered.add(tool.name);
    }
  }

  /** The tools in their order. */
  get list(): PlacedTool[] {
    return [...this.#offered].flatMap((name) => this.#declared.get(name) ?? []);
  }

  /** The names of tools whose sent names are others, by those. */
  get changedNames(): ReadonlyMap<string, string> {
    return new Map([...this.#originals].filter(([sent, name]) => sent !== name));
  }

  /** The name as it is sent. Throws `RefusedBody` if that of another tool is the same. */
  sentName(name: string, pointer: string): string {
    const { toolName } = providerModels[this.options.provider];
    const isFit = fitting.test(name) && toolName?.pattern.test(name) !== false;
    const sent = isFit ? name : shorten(name);
    if ((this.#originals.get(sent) ?? name) !== name)
      throw new RefusedBody(pointer, 'is too much like the name of another tool for this provider');
    this.#originals.set(sent, name);
    return sent;
  }

  /** Offers a tool that the body declares. Throws `RefusedBody` if it declares none of this name. */
  offer(name: string, pointer: string): PlacedTool {
    const declared = this.#find(name, pointer);
    this.#offered.add(name);
    return declared;
  }

  /** Offers a tool that comes within the conversation. */
  define(tool: ToolBody, pointer: string): void {
    this.#declare(tool, pointer);
    this.#offered.add(tool.name);
  }

  remove(name: string, pointer: string): void {
    this.#find(name, pointer);
    this.#offered.delete(name);
  }

  /** Offers the tool of a reference. Gives its description and schema, at later references its name alone. */
  refer(name: string, pointer: string): string {
    const { tool } = this.offer(name, pointer);
    const { description = '', parameters } = tool;
    const isFirst = !this.#described.has(name);
    this.#described.add(name);
    return isFirst ? `${tool.name}\n${description}\n${this.options.toText(parameters)}` : tool.name;
  }

  #find(name: string, pointer: string): PlacedTool {
    const declared = this.#declared.get(name);
    if (declared === undefined) throw new RefusedBody(pointer, 'is not the name of a tool');
    return declared;
  }

  #declare({ name, input_schema, cache_control, ...given }: ToolBody, pointer: string): void {
    const { description, strict } = given;
    const cache = this.options.cacheOf(cache_control);
    const tool = {
      name: this.sentName(name, `${pointer}/name`),
      parameters: input_schema,
      ...givenFields({ description, strict, cache }),
    };
    this.#declared.set(name, { tool, pointer });
  }
}
