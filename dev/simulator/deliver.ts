import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { setTimeout } from 'node:timers/promises';
import type { Call, Exchange } from './calls.js';
import { noTimestamp } from './compose.js';
import { joinFrames } from './frames.js';
import type { Frame, Reply } from './wire-format.js';

/** Sends a reply as its behaviour says. Resolves when nothing more will be sent. */
export async function deliver(exchange: Exchange, reply: Reply): Promise<void> {
  return exchange.call.facts.stream ? deliverStream(exchange, reply) : deliverWhole(exchange, reply);
}

/** Waits this long, or until the call is closed. */
export async function pause(ms: number, { closed }: Call): Promise<void> {
  if (ms > 0) await Promise.race([setTimeout(ms, undefined, { ref: false }), closed]);
}

/** Sends the opening, and then the same bytes repeatedly, as fast as the client reads them, until it disconnects. */
export async function sendEndlessly(response: ServerResponse, opening: Frame, more: Frame): Promise<void> {
  const endless = async function* () {
    yield opening;
    // Without a byte to send nothing would ever wait for the client.
    for (;;) yield more.length > 0 ? more : endlessText;
  };
  await pipeline(endless, response).catch(() => undefined);
}

/** The repeated piece of an endless text, large enough for one write. */
export const endlessText = 'a'.repeat(65_536);

async function deliverWhole(exchange: Exchange, reply: Reply): Promise<void> {
  const { call, format, response, behaviour } = exchange;
  const { delivery, lullMs } = behaviour;
  const text = JSON.stringify(format.reply(reply));
  const half = text.slice(0, text.length / 2);
  const sent = delivery === 'truncate' || delivery === 'malformed' ? half : text;
  response.writeHead(200, {
    'Content-Type': 'application/json',
    ...(delivery !== 'endless' && { 'Content-Length': Buffer.byteLength(sent) }),
    ...format.headers(reply.callId),
  });
  switch (delivery) {
    case 'lull':
      response.write(half);
      await pause(lullMs, call);
      return void response.end(text.slice(half.length));
    case 'hang':
    case 'reset':
      response.write(half);
      return leave(response, delivery);
    case 'drip':
      return drip(Buffer.from(text), exchange);
    case 'endless':
      return sendEndlessly(response, half, endlessText);
    default:
      response.end(sent);
  }
}

async function deliverStream(exchange: Exchange, reply: Reply): Promise<void> {
  const { call, format, gates, response, behaviour } = exchange;
  const { delivery, gapMs, lullMs } = behaviour;
  const { opening, deltas, closing } = format.stream(reply);
  response.writeHead(200, {
    'Content-Type': format.streamType,
    'Cache-Control': 'no-cache',
    ...format.headers(reply.callId),
  });
  if (delivery === 'drip')
    return drip(Buffer.from(joinFrames([...opening, ...deltas, ...closing]) as Buffer), exchange);
  if (delivery === 'endless')
    return sendEndlessly(response, joinFrames(opening), joinFrames(Array(100).fill(deltas).flat()));
  await sendOpening(opening, exchange);
  const usual =
    delivery === 'whole' || delivery === 'truncate' ? deltas.length : Math.ceil(deltas.length / 2);
  const { afterDeltas = usual } = behaviour;
  const beginning = delivery === 'whole' ? deltas : deltas.slice(0, afterDeltas);
  await sendDeltas(beginning, exchange);
  if (delivery !== 'whole') await pause(gapMs, call);
  switch (delivery) {
    case 'gated':
    case 'lull':
      await (delivery === 'lull' ? pause(lullMs, call) : gates.pass(call));
      await sendDeltas(deltas.slice(beginning.length), exchange);
      break;
    case 'truncate':
      return void response.end();
    case 'malformed':
      return void response.end(format.malformed());
    case 'error':
      return void response.end(format.streamError(reply.callId));
    case 'hang':
    case 'reset':
      return leave(response, delivery);
  }
  for (const frame of closing) response.write(frame);
  response.end();
}

const signsOfWork = 10;

/**
 * Sends the opening of a stream, and where the model works the provider's signs of life at each tenth of that time.
 * While a model thinks half of them come before the block of its thinking begins.
 */
async function sendOpening(
  opening: readonly Frame[],
  { call, format, response, behaviour: { worksOn, workMs, isSilent } }: Exchange,
): Promise<void> {
  const write = (frames: readonly Frame[]) => frames.forEach((frame) => void response.write(frame));
  if (worksOn === undefined) return write(opening);
  write(opening.slice(0, 1));
  const before = worksOn === 'thinking' ? signsOfWork / 2 : 0;
  for (let index = 0; index < signsOfWork && !response.destroyed; index += 1) {
    if (index === before) write(opening.slice(1));
    await pause(workMs / signsOfWork, call);
    const place = index < before ? 0 : 1;
    const sign = isSilent ? undefined : format.lifeSign?.(worksOn, { place, index });
    if (sign !== undefined) response.write(sign);
  }
}

async function sendDeltas(
  deltas: readonly Frame[],
  { call, response, behaviour: { gapMs, says } }: Exchange,
): Promise<void> {
  for (const [index, frame] of deltas.entries()) {
    if (index > 0) await pause(gapMs, call);
    if (response.destroyed) return;
    response.write(says === 'times' ? withTime(frame) : frame);
  }
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

async function drip(body: Buffer, { call, response, behaviour }: Exchange): Promise<void> {
  for (let index = 0; index < body.length; index += 1) {
    if (index > 0) await pause(behaviour.gapMs, call);
    if (response.destroyed) return;
    response.write(body.subarray(index, index + 1));
  }
  response.end();
}
