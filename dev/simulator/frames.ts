import type { Part, TextPart, Turn } from '../../shared/conversation.js';
import type { Frame, StreamFrames } from './wire-format.js';

/** Decodes a percent-encoded segment of a path; `undefined` if it is missing or not well-formed. */
export function decodeSegment(segment: string | undefined): string | undefined {
  if (segment === undefined) return undefined;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** One server-sent event with JSON data, and a name where the provider gives its events names. */
export function serverSentEvent(data: object, name?: string): string {
  const prefix = name === undefined ? '' : `event: ${name}\n`;
  return `${prefix}data: ${JSON.stringify(data)}\n\n`;
}

/** The content of a turn that has these parts: their texts, joined, where they are nothing else. */
export const contentOf = (parts: readonly Part[]): Turn['content'] =>
  parts.every((part): part is TextPart => part.type === 'text')
    ? parts.map(({ text }) => text).join('')
    : parts;

/** A block of a reply: whole, as its beginning is streamed if it is, and what is added to it piece by piece. */
export interface WrittenBlock {
  readonly whole: object;
  readonly start?: object;
  readonly deltas: readonly object[];
}

/** A stream of blocks that follow one another, whose first frame belongs to its opening and the last to its closing. */
export function joinBlocks(
  start: readonly Frame[],
  blocks: readonly (readonly Frame[])[],
  end: readonly Frame[],
): StreamFrames {
  const frames = blocks.flat();
  return {
    opening: [...start, ...frames.slice(0, 1)],
    deltas: frames.slice(1, -1),
    closing: [...frames.slice(1).slice(-1), ...end],
  };
}

/** Several frames as one. */
export const joinFrames = (frames: readonly Frame[]): Frame =>
  frames.every((frame) => typeof frame === 'string')
    ? frames.join('')
    : Buffer.concat(frames.map((frame) => Buffer.from(frame as Buffer)));
