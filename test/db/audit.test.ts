import postgres from 'postgres';
import { afterAll, describe, expect, it } from 'vitest';
import { type AuditFilter, listAudit } from '../../db/audit.js';
import type { Database } from '../../db/database/client.js';
import { drizzle } from '../../db/database/drizzle.js';
import { startTestDatabase } from '../support/database.js';

const allEntries = 5000;
const limit = 50;

interface PlanNode {
  'Node Type': string;
  'Index Name'?: string;
  'Actual Rows': number;
  Plans?: PlanNode[];
}

const server = await startTestDatabase();
afterAll(server.stop);
const client = postgres(server.url, { max: 1, fetch_types: false, onnotice: () => undefined });
afterAll(() => client.end());
await client`
  insert into audit (at, actor, action, target_id, target_name)
  select now() - interval '1 minute' * n, 'ada', 'users.add', gen_random_uuid(), 'user-' || n
  from generate_series(1, ${allEntries}::int) as n`;
await client`analyze audit`;
const sent: { text: string; values: unknown[] }[] = [];

const db = () =>
  drizzle(client, { logger: { logQuery: (text, values) => void sent.push({ text, values }) } });
const list = (filter: Partial<AuditFilter>) => {
  const run: Database['run'] = async (query) => await query(db());
  return listAudit({ run }, { limit, ...filter });
};

const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

/** The plan of the last statement that was sent, with what running it came to. */
async function planOfLast(): Promise<PlanNode[]> {
  const { text = '', values = [] } = sent.at(-1) ?? {};
  const rows = await client.unsafe(`explain (analyze, format json) ${text}`, values as string[]);
  return nodesOf(rows[0]?.['QUERY PLAN'][0].Plan);
}

describe('listAudit', () => {
  it('reads a page through the index, wherever it is, and sorts nothing', async () => {
    const first = await list({});
    const middle = await client`select id from audit order by at offset ${allEntries / 2} limit 1`;
    for (const before of [undefined, first.at(-1)?.id, middle[0]?.id]) {
      expect(await list({ before })).toHaveLength(limit);
      const plan = await planOfLast();
      expect(plan.flatMap((node) => node['Index Name'] ?? [])).toContain('audit_newest');
      expect(plan.map((node) => node['Node Type'])).not.toEqual(
        expect.arrayContaining([expect.stringMatching(/Sort|Seq Scan/)]),
      );
      expect(Math.max(...plan.map((node) => node['Actual Rows']))).toBe(limit);
    }
  });
});
