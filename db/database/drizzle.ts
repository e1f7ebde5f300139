import { createRequire } from 'node:module';

/**
 * The parts of Drizzle that we use, loaded as CommonJS. When a package is imported as ESM, Node parses the exports in
 * its package.json once per file, and Drizzle's are 180 KB: 0.46 s of processor time at every start of a program,
 * instead of 0.08 s.
 */
const load = createRequire(import.meta.url);

export type { Column, Placeholder, SQL, SQLWrapper } from 'drizzle-orm';
export type { PgUpdateSetSource } from 'drizzle-orm/pg-core';
export type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';

export const {
  and,
  asc,
  count,
  desc,
  DrizzleQueryError,
  eq,
  exists,
  getTableColumns,
  gt,
  inArray,
  isNull,
  lt,
  lte,
  or,
  sql,
} = load('drizzle-orm') as typeof import('drizzle-orm');

export const {
  alias,
  bigint,
  boolean,
  customType,
  date,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  timestamp,
  uniqueIndex,
  uuid,
} = load('drizzle-orm/pg-core') as typeof import('drizzle-orm/pg-core');

export const { readMigrationFiles } = load('drizzle-orm/migrator') as typeof import('drizzle-orm/migrator');

export const { drizzle } = load('drizzle-orm/postgres-js') as typeof import('drizzle-orm/postgres-js');
