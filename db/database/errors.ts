import postgres from 'postgres';
import { withTimeout } from '../../shared/runtime/with-timeout.js';
import { isCertificateError } from '../../shared/urls/store-certificates.js';

/** A time limit of ours has passed, or we have closed the connection. */
export class DatabaseTimeout extends Error {
  override readonly name = 'DatabaseTimeout';

  constructor(readonly code: 'NO_ANSWER' | 'NO_FREE_CONNECTION' | 'CONNECTION_ENDED') {
    super(code);
  }
}

/** Returns the result of the work, or throws `DatabaseTimeout` after `ms` milliseconds; the work goes on. */
export const answerWithin = <T>(ms: number, work: Promise<T>): Promise<T> =>
  withTimeout(ms, work, () => new DatabaseTimeout('NO_ANSWER'));

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
export function isDatabaseError(error: unknown): boolean {
  const answered = postgresErrorOf(error);
  if (answered) return endsConnection(answered) || troubleStates.test(answered.code);
  return connectionCodes.test(codeOf(error) ?? '');
}

/** Whether a query failed in a way that leaves its connection good. */
export function keepsConnection(error: unknown): boolean {
  const answered = postgresErrorOf(error);
  if (answered === undefined || endsConnection(answered)) return false;
  return !troubleStates.test(answered.code) || statementStates.test(answered.code);
}

/**
 * Whether a query met what every connection to this server would meet, while a new one may lead to another: after a
 * failover the old server may go on as one that can only be read.
 */
export function concernsServer(error: unknown): boolean {
  const answered = postgresErrorOf(error);
  if (answered === undefined) return codeOf(error) === 'NO_ANSWER';
  return (
    !statementStates.test(answered.code) && answered.code !== tooManyConnections && isDatabaseError(error)
  );
}

/** What is wrong with the database, in words that are safe to show: messages can hold its address and a query. */
export function errorOf(error: unknown): string {
  const code = codeOf(error);
  return `the database ${wordsFor(error, code)}${code === undefined ? '' : ` (${code})`}`;
}

function wordsFor(error: unknown, code = ''): string {
  const answered = postgresErrorOf(error);
  if (answered && endsConnection(answered)) return 'refuses or ends the connection';
  if (code === readOnly) return 'is read-only';
  if (answered) return 'answers with an error';
  if (code === 'TLS_NOT_OFFERED') return 'does not offer TLS';
  return isCertificateError(code) ? 'shows a certificate that is not trusted' : 'cannot be reached';
}

const endsConnection = ({ severity }: postgres.PostgresError): boolean => severity !== 'ERROR';

/** SQLSTATE of a table or schema that is not there. */
export const undefinedTable = '42P01';

/** SQLSTATE of a statement that was cut, by the time limit or by an operator. */
export const statementCut = '57014';

const readOnly = '25006';
const tooManyConnections = '53300';

/** What to tell people whose database lacks what this version needs. */
export const schemaMissing = 'the schema is missing or older than this release: run quillgate migrate';

/**
 * SQLSTATEs, PostgreSQL's manual, appendix A: connection lost (08), credentials refused (28), no room (53), cancelled,
 * shut down or starting up (57), its disk (58); no such database, read-only as a replica is, serialisation, deadlock,
 * a lock that others hold, schema missing.
 */
const troubleStates = /^(08|28|53|57|58|3D000|25006|40001|40P01|55P03|42P01)/;

/** Those of them that are about the one statement alone. */
const statementStates = /^(57014|40001|40P01|55P03)$/;

/** Codes of the system (but not Node's own, ERR_…), of postgres.js, of this folder, of Node's streams and of TLS. */
const connectionCodes =
  /^(E(?!RR_)[A-Z\d_]+|CONNECT_TIMEOUT|CONNECTION_\w+|SASL_\w+|AUTH_\w+|NO_ANSWER|NO_FREE_CONNECTION|TLS_NOT_OFFERED|ERR_(STREAM|SOCKET|TLS|SSL)_\w+|\w*CERT_\w+|\w+_CERT|UNABLE_TO_\w+|HOSTNAME_MISMATCH|INVALID_CA)$/;

const deepestCause = 5;

/** The error and its causes: Drizzle wraps what postgres.js throws, and Node what it met at several addresses. */
function chainOf(error: unknown, depth = 0): Error[] {
  if (!(error instanceof Error) || depth === deepestCause) return [];
  const members: unknown[] = error instanceof AggregateError ? error.errors : [];
  return [error, ...[error.cause, ...members].flatMap((link) => chainOf(link, depth + 1))];
}
