import { hostname, userInfo } from 'node:os';

/** Who runs the command, as the audit names them: the account of the operating system, and its machine. */
export const actor = (): string => `${account()}@${hostname()}`;

/** Containers may run under a number that has no name. */
function account(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}
