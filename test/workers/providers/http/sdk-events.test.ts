import { describe, expect, it } from 'vitest';
import { readEvents } from '../../../../workers/providers/http/sdk-fetch.js';

/** The data of the events of a stream that comes in these chunks. */
async function read(...chunks: Uint8Array[]): Promise<string[]> {
  const body = chunks[Symbol.iterator]();
  const read: string[] = [];
  for await (const events of readEvents({ body } as unknown as Response))
    read.push(...events.map(({ data }) => data));
  return read;
}

describe('readEvents', () => {
  it('gives the events of a stream that is cut anywhere', async () => {
    const stream = Buffer.from(': comment\n\ndata: {"a":"ü€😀"}\r\n\r\nevent: x\ndata: 1\ndata: 2\n\n');
    const bytes = [...stream].map((byte) => Uint8Array.of(byte));
    expect(await read(...bytes)).toEqual(['{"a":"ü€😀"}', '1\n2']);
    expect(await read(stream)).toEqual(['{"a":"ü€😀"}', '1\n2']);
  });

  it.each(['', '\n', '\n\n'])('gives a last event that ends with %j', async (end) => {
    expect(await read(Buffer.from(`data: 1\n\ndata: 2${end}`))).toEqual(['1', '2']);
  });
});
