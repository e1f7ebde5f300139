import { singleFlight } from '../../shared/runtime/retry.js';
import { errorOf, schemaMissing } from './errors.js';
import { findSchemaAge, type SchemaAge } from './migrate.js';

/** The result of one check; the detail is safe to show. */
export type CheckResult = { status: 'ok'; detail?: string } | { status: 'failing'; detail: string };

/** Whether the database answers, and whether its schema is the one this release needs. */
export interface DatabaseHealth {
  database: CheckResult;
  migrations: CheckResult;
}

type Run = (query: typeof findSchemaAge) => Promise<SchemaAge>;

/** Strangers may ask for a check, as often as they like. */
const checksApartMs = 50;

/** Makes the check of a database on which `run` runs a query. It never throws; concurrent callers share one. */
export const createHealthCheck = (run: Run): (() => Promise<DatabaseHealth>) =>
  singleFlight(() => run(findSchemaAge).then(healthOf, healthAfter), { apartMs: checksApartMs });

const healthOf = (age: SchemaAge): DatabaseHealth => ({
  database: { status: 'ok' },
  migrations: migrationsByAge[age],
});

const migrationsByAge: Record<SchemaAge, CheckResult> = {
  older: { status: 'failing', detail: schemaMissing },
  current: { status: 'ok' },
  newer: { status: 'ok', detail: 'a newer release has migrated this database' },
};

function healthAfter(error: unknown): DatabaseHealth {
  const result = { status: 'failing', detail: errorOf(error) } as const;
  return { database: result, migrations: result };
}
