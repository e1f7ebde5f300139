import {
  Controller,
  Get,
  Middlewares,
  Queries,
  Response,
  Route,
  Security,
  SuccessResponse,
} from '@tsoa/runtime';
import { listAudit } from '../../db/audit.js';
import type { Database } from '../../db/database/client.js';
import type { AuditPage } from '../../shared/contracts/accounts.js';
import type { Problem } from '../../shared/contracts/contract.js';
import { checkQuery, defaultLimit } from '../http/query.js';
import { type AuditQuery, auditQuery, toPage } from './account-input.js';

@Route('admin/audit')
@Security('admin')
@Response<Problem, { 'Retry-After': string }>('503', 'The database is unavailable')
export class AuditController extends Controller {
  constructor(private readonly deps: { database: Pick<Database, 'run'> }) {
    super();
  }

  /**
   * Changes of users, tokens and settings, newest first: the time, the operator, and for settings the values before and
   * after. It is kept for `AUDIT_DAYS`.
   *
   * @summary List what operators have done
   */
  @Get()
  @Middlewares(checkQuery(auditQuery))
  @SuccessResponse('200', 'One page of the audit', 'application/json')
  async listAudit(@Queries() query: AuditQuery): Promise<AuditPage> {
    const { limit = defaultLimit } = query;
    const entries = await listAudit(this.deps.database, { ...query, limit: limit + 1 });
    return toPage(entries, limit, ({ id }) => id);
  }
}
