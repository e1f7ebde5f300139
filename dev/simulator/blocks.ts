import type { Part, TextPart, Turn } from '../../shared/conversation.js';
import type { Frame, StreamFrames } from './wire-format.js';

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

/** The frames of a block of a streamed reply. */
export interface BlockFrames {
  readonly start: Frame;
  readonly deltas: readonly Frame[];
  readonly stop: Frame;
}

/** The frames of blocks: one block's end and the beginning of the next one come with the first piece behind them. */
export function joinBlocks(blocks: readonly BlockFrames[]): StreamFrames {
  const [first, ...others] = blocks;
  const last = blocks.at(-1);
  if (first === undefined || last === undefined) return { opening: [], deltas: [], closing: [] };
  const more = others.flatMap(({ start, deltas: [piece, ...rest] }, index) => [
    joinFrames([blocks[index]?.stop ?? '', start, piece ?? '']),
    ...rest,
  ]);
  return { opening: [first.start], deltas: [...first.deltas, ...more], closing: [last.stop] };
}

/** Several frames as one. */
export const joinFrames = (frames: readonly Frame[]): Frame =>
  frames.every((frame) => typeof frame === 'string')
    ? frames.join('')
    : Buffer.concat(frames.map((frame) => Buffer.from(frame as Buffer)));
