import { describe, expect, it } from 'vitest';
import { StopText } from '../../../../workers/providers/reply/stop-text.js';

/** The text that is given of pieces, and whether a text to stop at was found; with what is kept back until the end. */
function read(stops: string[], pieces: string[]) {
  const stop = new StopText(stops);
  const given: string[] = [];
  for (const piece of pieces) {
    const { text, isFound } = stop.take(piece);
    given.push(text);
    if (isFound) return { text: given.join('') + stop.rest(), isFound };
  }
  return { text: given.join('') + stop.rest(), isFound: false };
}

describe('a text with texts to stop at', () => {
  it.each<[given: string, stops: string[], text: string, gives: string]>([
    ['one in the middle', ['END'], 'one END two', 'one '],
    ['one at its beginning', ['one'], 'one two', ''],
    ['one at its end', ['.'], 'one.', 'one'],
    ['the beginning of one, and then the whole', ['aab'], 'aaab', 'a'],
    ['one that begins within itself', ['abab'], 'abaabab', 'aba'],
    ['one within another that is complete before it', ['b', 'abc'], 'abc', 'a'],
    ['two that end together', ['c', 'bc'], 'abc', 'a'],
    ['two, the later of the list first', ['z', 'y'], 'x y z', 'x '],
    ['one of two units to a character', ['🎉'], 'a🎈🎉', 'a🎈'],
    ['one of control characters', ['\u0000\n'], 'a\u0000\u0000\nb', 'a\u0000'],
  ])('%s -> ends before it, whatever its pieces are', (_, stops, text, gives) => {
    const halves = Array.from({ length: text.length }, (_each, at) => [text.slice(0, at), text.slice(at)]);
    for (const pieces of [[text], text.split(''), ...halves])
      expect(read(stops, pieces)).toEqual({ text: gives, isFound: true });
  });

  it.each<[given: string, stops: string[], text: string]>([
    ['none', ['END'], 'one'],
    ['the beginning of one at its end', ['END', 'ENTER'], 'one EN'],
    ['one in other letters', ['END'], 'one end'],
    ['nothing', ['END'], ''],
  ])('%s -> is given whole, whatever its pieces are', (_, stops, text) => {
    for (const pieces of [[text], text.split('')])
      expect(read(stops, pieces)).toEqual({ text, isFound: false });
  });

  it('a piece that cannot begin one -> is given at once, and one that can is kept back', () => {
    const stop = new StopText(['\n\n']);
    const pieces = ['one', '\n', 'two', ' three\n'];
    expect(pieces.map((piece) => stop.take(piece).text)).toEqual(['one', '', '\ntwo', ' three']);
    expect([stop.rest(), stop.rest()]).toEqual(['\n', '']);
  });

  it('a rest that was taken -> is no beginning of what comes later', () => {
    const stop = new StopText(['ab']);
    expect([stop.take('a'), stop.rest(), stop.take('b')]).toEqual([
      { text: '', isFound: false },
      'a',
      { text: 'b', isFound: false },
    ]);
  });

  it('any texts and pieces -> as a search in the whole text finds it', () => {
    let seed = 7;
    const random = (below: number) => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    const word = (longest: number) =>
      Array.from({ length: 1 + random(longest) }, () => 'ab'[random(2)]).join('');
    for (let n = 0; n < 500; n += 1) {
      const stops = Array.from({ length: 1 + random(4) }, () => word(5));
      const pieces = Array.from({ length: random(6) }, () => word(8));
      const whole = pieces.join('');
      const end = Array.from(whole, (_each, at) => whole.slice(0, at + 1)).find((head) =>
        stops.some((stop) => head.endsWith(stop)),
      );
      const found = stops.filter((stop) => end?.endsWith(stop)).map(({ length }) => length);
      const text = end === undefined ? whole : end.slice(0, end.length - Math.max(...found));
      expect(read(stops, pieces), `${stops} in ${pieces}`).toEqual({ text, isFound: end !== undefined });
    }
  });
});
