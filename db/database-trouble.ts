import postgres from 'postgres';

/** Tells the database's trouble (away, silent, full, not migrated) from that of a query. */

/** The code of an error or of the nearest of its causes that has one: an SQLSTATE, or a word of Node or postgres.js. */
export function codeOf(error: unknown): string | undefined {
  return chainOf(error)
    .map((link) => ('code' in link ? link.code : undefined))
    .find((code) => typeof code === 'string');
}

/** What PostgreSQL itself has answered; undefined when the error is not its own. */
export const postgresErrorOf = (error: unknown): postgres.PostgresError | undefined =>
  chainOf(error).find((link) => link instanceof postgres.PostgresError);

/** Whether a query failed for a reason that lies in the database or on the way to it, so that it may succeed later. */
export function isDatabaseTrouble(error: unknown): boolean {
  const answered = postgresErrorOf(error);
  if (answered) return troubleStates.test(answered.code);
  // Every error of Node's sockets and look-ups names the system call.
  return chainOf(error).some((link) => 'syscall' in link) || connectionCodes.test(codeOf(error) ?? '');
}

/** What is wrong with the database, in words that are safe to show: messages can hold its address and a query. */
export function troubleOf(error: unknown): string {
  const code = codeOf(error);
  return `the database cannot be reached${code === undefined ? '' : ` (${code})`}`;
}

/** SQLSTATE of a table or schema that is not there. */
export const undefinedTable = '42P01';

/** What to tell people whose database lacks what this version needs. */
export const schemaMissing = 'the schema is missing: run quillgate migrate';

/**
 * SQLSTATEs, PostgreSQL's manual, appendix A: connection lost (08), credentials refused (28), no room (53), cancelled,
 * shut down or starting up (57), its disk (58); no such database, read-only as a replica is, serialisation, deadlock,
 * schema missing.
 */
const troubleStates = /^(08|28|53|57|58|3D000|25006|40001|40P01|42P01)/;

/** Codes of postgres.js, of this folder, of Node's streams and of TLS. */
const connectionCodes =
  /^(CONNECT_TIMEOUT|CONNECTION_\w+|SASL_\w+|NO_ANSWER|NO_FREE_CONNECTION|ERR_(STREAM|SOCKET|TLS|SSL)_\w+|\w*CERT_\w+|\w+_CERT|UNABLE_TO_\w+)$/;

const deepestCause = 5;

/** The error and its causes: Drizzle wraps what postgres.js throws. */
function chainOf(error: unknown): Error[] {
  const links: Error[] = [];
  for (let link = error; link instanceof Error && links.length < deepestCause; link = link.cause)
    links.push(link);
  return links;
}
