import { defineConfig } from 'drizzle-kit';

/** For `npx drizzle-kit generate`: writes the migration that a change of the schema needs. */
export default defineConfig({ dialect: 'postgresql', schema: './db/schema.ts', out: './db/migrations' });
