import { createHash } from 'node:crypto';
import type { Turn } from '../../shared/conversation.js';
import { countTokens, sizeOf } from './echo.js';
import type { CallParameters } from './wire-format.js';

const maxSeen = 10_000;

/** The beginnings of conversations that have been marked, by model and tools. */
export class PromptCaches {
  readonly #seen = new Set<string>();

  /** The tokens before the mark of a call: read as far as they were marked before, and else written. */
  count(model: string, turns: readonly Turn[], { tools = [], markedTurns = 0 }: CallParameters) {
    if (markedTurns === 0) return { cachedTokens: 0, cacheWriteTokens: 0 };
    const marked = turns.slice(0, markedTurns);
    const hash = createHash('sha256').update(JSON.stringify([model, tools]));
    const digests = marked.map((turn) => hash.update(JSON.stringify(turn)).copy().digest('base64'));
    const read = digests.findLastIndex((digest) => this.#seen.has(digest)) + 1;
    this.#seen.add(digests.at(-1) ?? '');
    for (const digest of this.#seen) if (this.#seen.size > maxSeen) this.#seen.delete(digest);
    const cachedTokens = countTokens(sizeOf(marked.slice(0, read)));
    return { cachedTokens, cacheWriteTokens: countTokens(sizeOf(marked)) - cachedTokens };
  }

  clear(): void {
    this.#seen.clear();
  }
}
