import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { noTimestamp, type ReplyBehaviour } from './behaviour.js';
import { joinFrames } from './blocks.js';
import type { Reply } from './exchange.js';
import type { Frame, Lull, StreamFrames, WireFormat } from './wire-format.js';

interface Delivered {
  readonly format: WireFormat;
  readonly behaviour: ReplyBehaviour;
  readonly reply: Reply;
  readonly stream: boolean;
  /** Waits until the gate of the model is open, or until the connection closes. */
  pass(): Promise<void>;
}

/** Sends a reply as its behaviour says. Resolves when nothing more will be sent. */
export async function deliver(response: ServerResponse, delivered: Delivered): Promise<void> {
  const { format, reply, stream } = delivered;
  return stream
    ? deliverStream(response, delivered, format.stream(reply))
    : deliverWhole(response, delivered, JSON.stringify(format.reply(reply)));
}

/** Waits this long, or until the connection closes. */
export function pause(ms: number, response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      response.off('close', wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    response.on('close', wake);
  });
}

/** Sends the opening, and then the same bytes repeatedly, as fast as the client reads them, until it disconnects. */
export async function sendEndlessly(response: ServerResponse, opening: Frame, more: Frame): Promise<void> {
  const endless = async function* () {
    yield opening;
    for (;;) yield more;
  };
  await pipeline(endless, response).catch(() => undefined);
}

/** The repeated piece of an endless text, large enough for one write. */
export const endlessText = 'a'.repeat(65_536);

async function deliverWhole(response: ServerResponse, delivered: Delivered, text: string): Promise<void> {
  const { format, behaviour, reply } = delivered;
  const { delivery, gapMs } = behaviour;
  const half = text.slice(0, Math.floor(text.length / 2));
  const sent = delivery === 'truncate' || delivery === 'malformed' ? half : text;
  response.writeHead(200, {
    'Content-Type': 'application/json',
    ...(delivery !== 'endless' && { 'Content-Length': Buffer.byteLength(sent) }),
    ...format.headers(reply.callId),
  });
  switch (delivery) {
    case 'whole':
    case 'gated':
    case 'truncate':
    case 'malformed':
      response.end(sent);
      return;
    case 'hang':
    case 'reset':
      response.write(half);
      return leave(response, delivery);
    case 'drip':
      return drip(response, Buffer.from(text), gapMs);
    case 'endless':
      return sendEndlessly(response, half, endlessText);
  }
}

async function deliverStream(
  response: ServerResponse,
  { format, behaviour, reply, pass }: Delivered,
  frames: StreamFrames,
): Promise<void> {
  const { opening, deltas, closing } = frames;
  const { delivery, gapMs } = behaviour;
  response.writeHead(200, {
    'Content-Type': format.streamType,
    'Cache-Control': 'no-cache',
    ...format.headers(reply.callId),
  });
  switch (delivery) {
    case 'whole':
      if (behaviour.lull) await sendLull(response, opening, { format, lull: behaviour.lull });
      await sendFrames(response, behaviour.lull ? { ...frames, opening: [] } : frames, behaviour);
      return void response.end();
    case 'gated': {
      const sent = await sendBeginning(response, frames, behaviour);
      await pass();
      await sendFrames(response, { opening: [], deltas: deltas.slice(sent), closing }, behaviour);
      return void response.end();
    }
    case 'truncate':
      await sendBeginning(response, frames, { afterDeltas: deltas.length, ...behaviour });
      return void response.end();
    case 'malformed':
      await sendBeginning(response, frames, behaviour);
      return void response.end(format.malformed());
    case 'hang':
    case 'reset':
      await sendBeginning(response, frames, behaviour);
      return leave(response, delivery);
    case 'drip':
      return drip(response, Buffer.from(joinFrames([...opening, ...deltas, ...closing]) as Buffer), gapMs);
    case 'endless':
      return sendEndlessly(response, joinFrames(opening), joinFrames(Array(100).fill(deltas).flat()));
  }
}

const signsOfLull = 10;

/**
 * Sends the opening of a stream, and then the provider's signs of life at each tenth of the lull. While a model thinks
 * half of them come before the block of its thinking begins.
 */
async function sendLull(
  response: ServerResponse,
  opening: readonly Frame[],
  { format, lull: { ms, of, isSilent } }: { format: WireFormat; lull: Lull },
): Promise<void> {
  const before = of === 'thinking' ? signsOfLull / 2 : 0;
  for (const frame of opening.slice(0, 1)) response.write(frame);
  for (let index = 0; index < signsOfLull && !response.destroyed; index += 1) {
    if (index === before) for (const frame of opening.slice(1)) response.write(frame);
    await pause(ms / signsOfLull, response);
    const place = index < before ? 0 : 1;
    const sign = isSilent ? undefined : format.lifeSign?.(of, { place, index });
    if (sign !== undefined) response.write(sign);
  }
}

/** A stream up to where it goes wrong or waits. Resolves to the number of its deltas. */
export async function sendBeginning(
  response: ServerResponse,
  { opening, deltas }: StreamFrames,
  behaviour: ReplyBehaviour,
): Promise<number> {
  const { gapMs, afterDeltas = Math.ceil(deltas.length / 2) } = behaviour;
  const frames = { opening, deltas: deltas.slice(0, afterDeltas), closing: [] };
  await sendFrames(response, frames, behaviour);
  if (gapMs > 0) await pause(gapMs, response);
  return frames.deltas.length;
}

async function sendFrames(
  response: ServerResponse,
  { opening, deltas, closing }: StreamFrames,
  { gapMs, says }: Pick<ReplyBehaviour, 'gapMs' | 'says'>,
): Promise<void> {
  const hasTimestamps = typeof says === 'object' && 'timestamps' in says;
  for (const frame of opening) response.write(frame);
  for (const [index, frame] of deltas.entries()) {
    if (index > 0 && gapMs > 0) await pause(gapMs, response);
    if (response.destroyed) return;
    response.write(hasTimestamps ? withTime(frame) : frame);
  }
  for (const frame of closing) response.write(frame);
}

/** The frame with the time of its sending, where it is text. */
const withTime = (frame: Frame): Frame =>
  typeof frame === 'string'
    ? frame.replace(noTimestamp, (performance.timeOrigin + performance.now()).toFixed(3))
    : frame;

/** Silence in the middle of a body, or the end of the connection, once all before it is on its way. */
async function leave(response: ServerResponse, how: 'hang' | 'reset'): Promise<void> {
  if (how === 'hang') return response.flushHeaders();
  await new Promise((resolve) => response.write('', resolve));
  response.socket?.destroy();
}

async function drip(response: ServerResponse, body: Buffer, gapMs: number): Promise<void> {
  for (let index = 0; index < body.length; index += 1) {
    if (index > 0) await pause(gapMs, response);
    if (response.destroyed) return;
    response.write(body.subarray(index, index + 1));
  }
  response.end();
}
