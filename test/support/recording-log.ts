import { pino } from 'pino';
import type { Log } from '../../shared/runtime/log.js';

/** A log that keeps its lines for the test to look at; errors are kept by their code and message. */
export function createRecordingLog(): { log: Log; lines: Record<string, unknown>[]; text(): string } {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { log, lines, text: () => JSON.stringify(lines) };
}
