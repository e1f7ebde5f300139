/** Thrown for a PostgreSQL URL that cannot be used; the message tells names of parameters, and never a value. */
export class PostgresUrlError extends Error {
  override readonly name = 'PostgresUrlError';
}
