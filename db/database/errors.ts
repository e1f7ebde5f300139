import postgres from 'postgres';
import { withTimeout } from '../../shared/runtime/retry.js';
import { isCertificateError } from '../../shared/urls/store-url-parts.js';

/** This process's time limit has passed, or it has closed the connection. */
export class DatabaseTimeout extends Error {
  override readonly name = 'DatabaseTimeout';

  constructor(readonly code: 'NO_ANSWER' | 'NO_FREE_CONNECTION' | 'CONNECTION_ENDED') {
    super(code);
  }
}

/** Returns the result of the work, or throws `DatabaseTimeout` after `ms` milliseconds; the work goes on. */
export const answerWithin = <T>(ms: number, work: Promise<T>): Promise<T> =>
  withTimeout(ms, work, () => new DatabaseTimeout('NO_ANSWER'));

/** The code of an error or of its nearest cause with one: an SQLSTATE, or a code of Node or postgres.js. */
export function codeOf(error: unknown): string | undefined {
  return chainOf(error)
    .map((link) => ('code' in link ? link.code : undefined))
    .find((code) => typeof code === 'string');
}

/** The error that PostgreSQL itself sent; undefined for any other. */
export const postgresErrorOf = (error: unknown): postgres.PostgresError | undefined =>
  chainOf(error).find((link) => link instanceof postgres.PostgresError);

/** Whether a query failed because of the database or the connection to it, so that it may succeed later. */
export function isDatabaseError(error: unknown): boolean {
  const answered = postgresErrorOf(error);
  if (answered) return endsConnection(answered) || databaseStates.test(answered.code);
  return connectionCodes.test(codeOf(error) ?? '');
}

/** Whether a statement failed because another row has the same values in this unique constraint or index. */
export function isUniqueViolation(error: unknown, constraint: string): boolean {
  const { code, constraint_name } = postgresErrorOf(error) ?? {};
  return code === uniqueViolation && constraint_name === constraint;
}

/** Whether a value of the statement is one that PostgreSQL cannot take: classes 22, 23 and 54. */
export const isRefusedRow = (error: unknown): boolean =>
  /^(22|23|54)/.test(postgresErrorOf(error)?.code ?? '');

/** PostgreSQL's manual, appendix A. */
const uniqueViolation = '23505';

/**
 * Whether the connections can still be used after a failed query. If not, all of them go: the error concerns the
 * server, while new connections may lead to another one (after a failover the old one may continue as read-only), or
 * postgres.js has lost one in the middle of a query, and would fail the next with the same error
 * (https://github.com/porsager/postgres/issues/1223).
 */
export function keepsConnections(error: unknown): boolean {
  const answered = postgresErrorOf(error);
  if (answered === undefined) return false;
  return (
    answered.code === tooManyConnections || statementStates.test(answered.code) || !isDatabaseError(error)
  );
}

/** Describes an error of the database in safe words: its own message can contain the address and a query. */
export function errorOf(error: unknown): string {
  const code = codeOf(error);
  return `the database ${describe(error, code)}${code === undefined ? '' : ` (${code})`}`;
}

function describe(error: unknown, code = ''): string {
  const answered = postgresErrorOf(error);
  if (answered && endsConnection(answered)) return 'refuses or ends the connection';
  if (code === readOnly) return 'is read-only';
  if (answered) return 'answers with an error';
  if (code === 'TLS_NOT_OFFERED') return 'does not offer TLS';
  return isCertificateError(code) ? 'shows a certificate that is not trusted' : 'cannot be reached';
}

const endsConnection = ({ severity }: postgres.PostgresError): boolean => severity !== 'ERROR';

/** SQLSTATE of a missing table or schema. */
export const undefinedTable = '42P01';

/** SQLSTATE of a statement cancelled by the time limit or an operator. */
export const queryCanceled = '57014';

const readOnly = '25006';
const tooManyConnections = '53300';

/** For a database that lacks migrations of this release. */
export const schemaMissing = 'the schema is missing or older than this release: run quillgate migrate';

/**
 * SQLSTATEs, PostgreSQL's manual, appendix A: connection lost (08), credentials refused (28), no room (53), cancelled,
 * shut down or starting up (57), its disk (58); no such database, read-only as a replica is, serialisation, deadlock,
 * a lock that others hold, schema missing.
 */
const databaseStates = /^(08|28|53|57|58|3D000|25006|40001|40P01|55P03|42P01)/;

/** SQLSTATEs that concern only the one statement. */
const statementStates = /^(57014|40001|40P01|55P03)$/;

/** Codes of the system (but not Node's own, ERR_…), of postgres.js, of this folder, of Node's streams and of TLS. */
const connectionCodes =
  /^(E(?!RR_)[A-Z\d_]+|CONNECT_TIMEOUT|CONNECTION_\w+|SASL_\w+|AUTH_\w+|NO_ANSWER|NO_FREE_CONNECTION|TLS_NOT_OFFERED|ERR_(STREAM|SOCKET|TLS|SSL)_\w+|\w*CERT_\w+|\w+_CERT|UNABLE_TO_\w+|HOSTNAME_MISMATCH|INVALID_CA)$/;

const deepestCause = 5;

/** The error and its causes: Drizzle wraps the errors of postgres.js, and Node those of several addresses. */
function chainOf(error: unknown, depth = 0): Error[] {
  if (!(error instanceof Error) || depth === deepestCause) return [];
  const members: unknown[] = error instanceof AggregateError ? error.errors : [];
  return [error, ...[error.cause, ...members].flatMap((link) => chainOf(link, depth + 1))];
}
