import { environmentSchema } from '../shared/config/config.js';
import { StartupError } from '../shared/runtime/program.js';

/** Checks the name of a user or of a token's owner by the rule of CHAT_USERNAME. Throws `StartupError`. */
export function checkName(name: string): string {
  const [issue] = environmentSchema.shape.CHAT_USERNAME.safeParse(name).error?.issues ?? [];
  if (issue !== undefined)
    throw new StartupError('A name has 1 to 128 characters, and no colon or control characters.');
  return name;
}
