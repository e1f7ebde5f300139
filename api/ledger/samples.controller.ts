import { Controller, Get, Middlewares, Queries, Route, Security, SuccessResponse } from '@tsoa/runtime';
import { z } from 'zod';
import type { Database } from '../../db/database/client.js';
import { type Ends, readEnds } from '../../db/ledger/read.js';
import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import type { Samples } from '../../shared/contracts/history.js';
import { checkQuery } from '../http/query.js';
import { type SampleLog, sampleEveryMs, samplesKeptMs } from './sample-log.js';

/** The dependencies of the operation on the last ten minutes. */
export interface SamplesControllerDeps {
  samples: Pick<SampleLog, 'list'>;
  database: Pick<Database, 'run'>;
}

/** Query of `GET /admin/samples`. */
export interface SampleQuery {
  /** Only samples of this provider. */
  provider?: ProviderId;
}

export const sampleQuery = z.object({ provider: z.enum(providerIds) }).partial();

@Route('admin')
@Security('admin')
export class SamplesController extends Controller {
  constructor(private readonly deps: SamplesControllerDeps) {
    super();
  }

  /**
   * Ten minutes of measurements, one every five seconds for each provider. What waits and runs is what this API process
   * has seen of the whole fleet; a restart loses it. Ends and times are those of the ledger, null while its database is
   * away.
   *
   * @summary Get the measurements of the last ten minutes
   */
  @Get('samples')
  @Middlewares(checkQuery(sampleQuery))
  @SuccessResponse('200', 'The samples', 'application/json')
  async getSamples(@Queries() query: SampleQuery): Promise<Samples> {
    const { samples, database } = this.deps;
    const { provider } = query;
    const known = await readEnds(database, { sinceMs: Date.now() - samplesKeptMs, provider }).catch(
      () => undefined,
    );
    const ends = known && new Map(known.map((end) => [`${end.slot} ${end.provider}`, end]));
    return {
      at: new Date().toISOString(),
      everyMs: sampleEveryMs,
      samples: samples
        .list()
        .filter((sample) => provider === undefined || sample.provider === provider)
        .map(({ slot, ...load }) => ({
          ...load,
          at: new Date(slot).toISOString(),
          ...endsOf(ends?.get(`${slot} ${load.provider}`), ends !== undefined),
        })),
    };
  }
}

/** None where the ledger has none in these five seconds, and null where it cannot be read. */
function endsOf(known: Ends | undefined, isRead: boolean) {
  const none = isRead ? 0 : null;
  const { ended = none, failed = none, waitedMs = null, calledMs = null } = known ?? {};
  return { ended, failed, queueMs: waitedMs, providerMs: calledMs };
}
