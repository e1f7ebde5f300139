import type { ServerResponse } from 'node:http';
import type { Lull, StreamFrames, WireFormat } from './wire-format.js';

const signs = 10;

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

/**
 * Sends the opening of a stream, and then the provider's signs of life at each tenth of the lull. While a model thinks
 * half of them come before the block of its thinking begins. Resolves to the frames that are left.
 */
export async function sendLull(
  response: ServerResponse,
  { opening, deltas, closing }: StreamFrames,
  { format, lull: { ms, of, isSilent } }: { format: WireFormat; lull: Lull },
): Promise<StreamFrames> {
  const signOf = (place: number, index: number) =>
    isSilent ? undefined : format.lifeSign?.(of, { place, index });
  const wait = async (place: number, amount: number) => {
    for (let index = 0; index < amount && !response.destroyed; index += 1) {
      await pause(ms / signs, response);
      const sign = signOf(place, index);
      if (sign !== undefined) response.write(sign);
    }
  };
  const isThinking = of === 'thinking';
  for (const frame of opening.slice(0, 1)) response.write(frame);
  if (isThinking) await wait(0, signs / 2);
  for (const frame of opening.slice(1)) response.write(frame);
  await wait(1, isThinking ? signs / 2 : signs);
  return { opening: [], deltas, closing };
}
