import { crc32 } from 'node:zlib';

const stringType = 7;

/**
 * One frame of `application/vnd.amazon.eventstream`: total length, headers' length, CRC of both, headers, payload, CRC
 * of all of it (https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html).
 */
export function eventFrame(type: string, payload: object, kind: 'event' | 'exception' = 'event'): Buffer {
  const headers = Buffer.concat([
    header(`:${kind}-type`, type),
    header(':content-type', 'application/json'),
    header(':message-type', kind),
  ]);
  const body = Buffer.from(JSON.stringify(payload));
  const frame = Buffer.alloc(16 + headers.length + body.length);
  frame.writeUInt32BE(frame.length, 0);
  frame.writeUInt32BE(headers.length, 4);
  frame.writeUInt32BE(crc32(frame.subarray(0, 8)), 8);
  headers.copy(frame, 12);
  body.copy(frame, 12 + headers.length);
  frame.writeUInt32BE(crc32(frame.subarray(0, -4)), frame.length - 4);
  return frame;
}

/** The same frame as if a byte had changed on its way. */
export function withWrongChecksum(frame: Buffer): Buffer {
  const changed = Buffer.from(frame);
  changed.writeUInt32BE(frame.readUInt32BE(frame.length - 4) ^ 1, frame.length - 4);
  return changed;
}

function header(name: string, value: string): Buffer {
  const nameLength = Buffer.from([Buffer.byteLength(name)]);
  const typeAndLength = Buffer.from([stringType, 0, 0]);
  typeAndLength.writeUInt16BE(Buffer.byteLength(value), 1);
  return Buffer.concat([nameLength, Buffer.from(name), typeAndLength, Buffer.from(value)]);
}
