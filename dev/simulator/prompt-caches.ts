import { createHash } from 'node:crypto';
import { countTokens, sizeOf } from './echo.js';
import type { CacheBlock, CallParameters } from './wire-format.js';

const maxSeen = 10_000;

/** Digests of the beginnings of conversations that have been marked, by model and tools. */
export class PromptCaches {
  readonly #seen = new Set<string>();

  /**
   * The tokens before the last mark of a call: read as far as a call has marked them before, and else written.
   * https://platform.claude.com/docs/en/build-with-claude/prompt-caching
   */
  count(model: string, blocks: readonly CacheBlock[], { tools = [] }: CallParameters) {
    const hash = createHash('sha256').update(JSON.stringify([model, tools]));
    let characters = 0;
    const last = blocks.findLastIndex(({ ttl }) => ttl !== undefined);
    const prefixes = blocks.slice(0, last + 1).map(({ role, part, ttl }) => {
      characters += sizeOf([{ role, content: [part] }]);
      const digest = hash
        .update(JSON.stringify([role, part]))
        .copy()
        .digest('base64');
      return { digest, ttl, tokens: countTokens(characters) };
    });
    const cachedTokens = prefixes.findLast(({ digest }) => this.#seen.has(digest))?.tokens ?? 0;
    const counts = { cachedTokens, cacheWriteTokens: 0, cacheWriteFor1hTokens: 0 };
    for (const { digest, ttl, tokens } of prefixes) {
      if (ttl === undefined) continue;
      this.#seen.add(digest);
      const written = Math.max(0, tokens - cachedTokens - counts.cacheWriteTokens);
      counts.cacheWriteTokens += written;
      if (ttl === '1h') counts.cacheWriteFor1hTokens += written;
    }
    for (const digest of this.#seen) if (this.#seen.size > maxSeen) this.#seen.delete(digest);
    return counts;
  }

  clear(): void {
    this.#seen.clear();
  }
}
