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
  const isThinking = of === 'thinking';
  const parts = isThinking ? [opening.slice(0, 1), opening.slice(1)] : [opening];
  for (const [half, part] of parts.entries()) {
    for (const frame of part) response.write(frame);
    for (let index = 0; index < signs / parts.length && !response.destroyed; index += 1) {
      await pause(ms / signs, response);
      const sign = isSilent ? undefined : format.lifeSign?.(of, { place: isThinking ? half : 1, index });
      if (sign !== undefined) response.write(sign);
    }
  }
  return { opening: [], deltas, closing };
}
