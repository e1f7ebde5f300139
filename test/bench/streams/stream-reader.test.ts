import { describe, expect, it } from 'vitest';
import { StreamReader } from './stream-reader.js';

const times = [1_700_000_000_000.125, 1_700_000_000_020.25, 1_700_000_000_041];
const text = times.map((time) => `${time.toFixed(3)} `).join('');
const delta = (piece: string) => `id: c.1\nevent: delta\ndata: ${JSON.stringify({ delta: piece })}\n\n`;
const done = (response: string) => `event: done\ndata: ${JSON.stringify({ response })}\n\n`;
const chunk = (content: string | null) =>
  `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;

/** Reads it in pieces of this size. */
function read(stream: string, size = stream.length) {
  const reader = new StreamReader();
  const found: number[] = [];
  for (let at = 0; at < stream.length; at += size) found.push(...reader.add(stream.slice(at, at + size)));
  return { found, events: reader.events, flaw: reader.flaw(3) };
}

describe('StreamReader', () => {
  it.each([1, 7, 1000])('reads our events in pieces of %i characters', (size) => {
    const stream = `: still there\n\n${delta(text.slice(0, 25))}${delta(text.slice(25))}${done(text)}`;
    expect(read(stream, size)).toEqual({ found: times, events: 2, flaw: undefined });
  });

  it("reads OpenAI's", () => {
    const pieces = times.map((time) => chunk(`${time.toFixed(3)} `)).join('');
    const stream = `${chunk('')}${pieces}${chunk(null)}data: {"choices":[]}\n\ndata: [DONE]\n\n`;
    expect(read(stream)).toEqual({ found: times, events: 3, flaw: undefined });
  });

  it.each([
    [delta(text), 'no end'],
    [delta(text.slice(18)) + done(text.slice(18)), 'deltas lost or twice'],
    [delta(text + text) + done(text + text), 'deltas out of order'],
    [delta(text) + done(`${text}x`), 'the deltas are not the response'],
    [delta(text) + done(text) + delta(text), 'something after the end'],
    [`${delta(text)}event: error\ndata: {"code":"internal"}\n\n`, 'error: internal'],
  ])('notices what is wrong: %#', (stream, flaw) => {
    expect(read(stream).flaw).toBe(flaw);
  });
});
