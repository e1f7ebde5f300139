import { pino } from 'pino';
import type { Log } from '../../shared/runtime/log.js';

/** A log that records its lines for the test; of errors it records the code and the message. */
export function createRecordingLog(): { log: Log; lines: Record<string, unknown>[]; text(): string } {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { log, lines, text: () => JSON.stringify(lines) };
}
