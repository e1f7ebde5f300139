/** A text to stop at, and how much of it the end of the text so far has. */
interface Search {
  readonly stop: string;
  /** By the number of matched units: how many still match when the next one does not (Knuth, Morris, Pratt). */
  readonly shorter: readonly number[];
  matched: number;
}

/**
 * Ends a text before the first of the texts to stop at that is complete, for an API that does not do so itself. What
 * may be the beginning of one is kept back. The pieces in which the text comes make no difference, and each of its
 * characters is looked at once for each text to stop at.
 */
export class StopText {
  readonly #searches: readonly Search[];
  #held = '';

  constructor(stops: readonly string[]) {
    this.#searches = stops.map((stop) => ({ stop, shorter: shorterMatches(stop), matched: 0 }));
  }

  /** The text that is certain, before the text to stop at if that is found. */
  take(piece: string): { text: string; isFound: boolean } {
    const text = this.#held + piece;
    for (let at = this.#held.length; at < text.length; at += 1) {
      const found = this.#longestAt(text[at] ?? '');
      if (found === 0) continue;
      this.#held = '';
      return { text: text.slice(0, at + 1 - found), isFound: true };
    }
    const certain = text.length - Math.max(...this.#searches.map(({ matched }) => matched));
    this.#held = text.slice(certain);
    return { text: text.slice(0, certain), isFound: false };
  }

  /** The tail that was kept back, at the end of the text. */
  rest(): string {
    const held = this.#held;
    this.#held = '';
    for (const search of this.#searches) search.matched = 0;
    return held;
  }

  /** The length of the longest text to stop at that this unit completes; 0 for none. */
  #longestAt(unit: string): number {
    let longest = 0;
    for (const search of this.#searches) {
      if (search.matched === 0 && search.stop[0] !== unit) continue;
      search.matched = step(search, search.matched, unit);
      if (search.matched === search.stop.length) longest = Math.max(longest, search.matched);
    }
    return longest;
  }
}

function step({ stop, shorter }: Pick<Search, 'stop' | 'shorter'>, matched: number, unit: string): number {
  let length = matched;
  while (length > 0 && stop[length] !== unit) length = shorter[length] ?? 0;
  return stop[length] === unit ? length + 1 : 0;
}

function shorterMatches(stop: string): number[] {
  const shorter = [0, 0];
  for (let length = 1; length < stop.length; length += 1)
    shorter.push(step({ stop, shorter }, shorter[length] ?? 0, stop[length] ?? ''));
  return shorter;
}
