import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FrameMeter, LineMeter, type StreamMeter } from '../../../../workers/providers/http/stream-pieces.js';

/** A meter's counts after these bytes, which come in chunks of these sizes, again and again. */
function measure(meter: StreamMeter, bytes: Buffer, sizes: readonly number[]) {
  let [ended, openBytes] = [0, 0];
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const chunk = bytes.subarray(at, at + (sizes[turn % sizes.length] ?? 1));
    const taken = meter.take(chunk);
    ended += taken.ended;
    openBytes = taken.openBytes;
    at += chunk.length;
  }
  return { ended, openBytes };
}

const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 });

/** A frame of this length, of which so many bytes are there. */
function frame(length: number, there = length): Buffer {
  const bytes = Buffer.alloc(Math.max(4, length), 0x0a);
  bytes.writeUInt32BE(length);
  return bytes.subarray(0, there);
}

describe('LineMeter', () => {
  it.each<[said: string, ended: number, openBytes: number]>([
    ['data: a', 0, 7],
    ['data: a\n', 1, 8],
    ['data: a\n\n', 2, 0],
    ['data: a\r\n\r\n', 2, 0],
    ['\r\n: ping\n\nid', 3, 2],
    // No blank line: a reader holds both.
    ['data: a\ndata: b\n', 2, 16],
    // A line of one letter is none that ends an event.
    ['data: a\nx\n', 2, 10],
    ['data: a\rdata: b\r\r', 0, 17],
  ])('%j in any chunks -> %i lines, %i bytes of an open event', (said, ended, openBytes) => {
    const check = (each: number[]) => {
      expect(measure(new LineMeter(), Buffer.from(said), each)).toEqual({ ended, openBytes });
    };
    fc.assert(fc.property(sizes, check));
  });
});

describe('FrameMeter', () => {
  it('whole frames of any length in any chunks -> each is counted, and none is open', () => {
    const lengths = fc.array(fc.integer({ min: 16, max: 200 }), { minLength: 1, maxLength: 8 });
    const check = (all: number[], each: number[]) => {
      expect(measure(new FrameMeter(), Buffer.concat(all.map((length) => frame(length))), each)).toEqual({
        ended: all.length,
        openBytes: 0,
      });
    };
    fc.assert(fc.property(lengths, sizes, check));
  });

  it.each<[said: string, bytes: Buffer, ended: number, openBytes: number]>([
    ['three bytes of a length', frame(100, 3), 0, 3],
    ['a length', frame(100, 4), 0, 100],
    ['a length of 4 GB', frame(100, 4).fill(0xff), 0, 0xff_ff_ff_ff],
    ['a frame, and most of the next', Buffer.concat([frame(20), frame(100, 99)]), 1, 100],
    // Too short for what every frame has: the SDK refuses it.
    ['a length of nothing', Buffer.alloc(16), 1, 0],
  ])('%s in any chunks -> what is announced counts', (_, bytes, ended, openBytes) => {
    const check = (each: number[]) => {
      expect(measure(new FrameMeter(), bytes, each)).toEqual({ ended, openBytes });
    };
    fc.assert(fc.property(sizes, check));
  });
});
