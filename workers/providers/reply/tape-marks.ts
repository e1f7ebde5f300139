import { randomBytes } from 'node:crypto';
import type { ProviderId } from '../../../shared/contracts/contract.js';
import type { OpaqueRole } from '../../../shared/conversation.js';
import { givenFields } from '../../../shared/json/json.js';
import { callsIn } from '../../../shared/protocol/alternating-turns.js';
import { type CallMark, type Mark, maxOpaqueLength } from '../../../shared/protocol/parts.js';
import type { Unusable } from '../errors/error-classification.js';
import type { ProviderRequest } from '../provider.js';

/** One whole block of a reply for the model alone. */
export interface OpaqueBlock {
  /** The role of the block; absent means `block`. */
  readonly role?: OpaqueRole | undefined;
  /** JSON text of an object. */
  readonly data: string;
}

/** The facts of a call that are known with the first piece of its arguments at the latest. */
export interface CallFacts {
  id?: string | undefined;
  name?: string | undefined;
  /** Its other fields: JSON text of an object. */
  extra?: string | undefined;
  /** The arguments of a call of which no piece comes. */
  preset?: string | undefined;
}

/** The characters that are kept of a call beside the pieces of its arguments. */
export const lengthOf = ({ id = '', name = '', extra = '', preset = '' }: CallFacts): number =>
  id.length + name.length + extra.length + preset.length;

/** The marks of one reply. Makes those of its calls and opaque blocks. */
export class TapeMarks {
  readonly list: Mark[] = [];
  readonly #offered: ReadonlySet<string>;
  /** From the first call on, the ids of the conversation's: a provider may begin anew with its own in each reply. */
  #ids: Set<string> | undefined;
  /** Characters of all blocks, also of those that were not kept. */
  #opaqueLength = 0;

  constructor(
    private readonly provider: ProviderId,
    private readonly request: ProviderRequest,
  ) {
    const { tools = [], toolChoice } = request.parameters ?? {};
    this.#offered = new Set(toolChoice === 'none' ? [] : tools.map(({ name }) => name));
  }

  /** Whether there are so many that only texts and calls are kept: readers look through all for each piece. */
  get areMany(): boolean {
    return this.list.length >= 2000;
  }

  /** Counts a block; false if there is no room to keep it, nor any that follows. */
  keep({ data }: OpaqueBlock): boolean {
    this.#opaqueLength += data.length;
    return this.#opaqueLength <= maxOpaqueLength && !this.areMany;
  }

  /** The mark of a block that stands on the tape at `at`. */
  ofOpaque({ role = 'block', data }: OpaqueBlock, at: number): Mark {
    const { provider, request } = this;
    return { kind: 'opaque', at, length: data.length, provider, model: request.model, role };
  }

  /** The mark of a call whose arguments begin at `at`, or what makes the call unusable. */
  ofCall({ id, name, extra }: CallFacts, at: number): CallMark | Unusable {
    if (!name) return 'nameless_call';
    if (!this.#offered.has(name)) return 'unknown_tool';
    this.#ids ??= new Set(callsIn(this.request.turns).map((call) => call.id));
    const ownId = id && !this.#ids.has(id) ? id : newCallId();
    this.#ids.add(ownId);
    return {
      kind: 'call',
      at,
      id: ownId,
      name,
      ...givenFields({ extra: this.request.reasoning && fitting(extra) }),
    };
  }
}

/** A text that has room in a message, where it travels as JSON text: up to 48,000 characters. */
const fitting = (text: string | undefined): string | undefined =>
  text !== undefined && JSON.stringify(text).length <= 48_000 ? text : undefined;

/** An id as long as OpenAI's own. */
const newCallId = (): string => `call_${randomBytes(18).toString('base64url')}`;
