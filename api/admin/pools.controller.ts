import {
  Controller,
  Get,
  Middlewares,
  Path,
  Queries,
  Response,
  Route,
  Security,
  SuccessResponse,
} from '@tsoa/runtime';
import type { Problem } from '../../shared/contracts/contract.js';
import type { Fleet, PoolJobPage } from '../../shared/contracts/fleet-contract.js';
import type { FleetState } from '../../shared/fleet/fleet-state.js';
import { checkQuery } from '../http/query.js';
import { type JobQuery, jobQuery, listJobs, type PoolQueues } from './pool-jobs.js';
import { checkProvider, providerOf } from './pool-settings.controller.js';

/** The dependencies of the operations on pools. */
export interface PoolsControllerDeps {
  fleet: Pick<FleetState, 'read'>;
  queues: PoolQueues;
}

@Route('admin/pools')
@Security('admin')
export class PoolsController extends Controller {
  constructor(private readonly deps: PoolsControllerDeps) {
    super();
  }

  /**
   * Every provider with its workers, as this API process knows them: from the heartbeats that they publish each second.
   * A worker that falls silent is shown as such within three seconds, and for a minute.
   *
   * @summary Get the state of the fleet
   */
  @Get()
  @SuccessResponse('200', 'The fleet', 'application/json')
  async getFleet(): Promise<Fleet> {
    return this.deps.fleet.read();
  }

  /**
   * Ids, times and attempts of the jobs in one state, the newest first, and none of their texts. Of the waiting ones
   * those with a priority come first. Jobs go on while you read: the next page may repeat some, or miss some.
   *
   * @summary List the jobs of a provider's queue
   * @param provider Id of the provider.
   */
  @Get('{provider}/jobs')
  @Middlewares(checkProvider, checkQuery(jobQuery))
  @SuccessResponse('200', 'One page of jobs', 'application/json')
  @Response<Problem>('404', 'No such provider')
  async listJobs(@Path() provider: string, @Queries() query: JobQuery): Promise<PoolJobPage> {
    return listJobs(this.deps.queues, providerOf(provider), query);
  }
}
