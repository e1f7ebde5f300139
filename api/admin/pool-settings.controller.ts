import {
  Body,
  Controller,
  Get,
  Header,
  Middlewares,
  Path,
  Put,
  Queries,
  Request,
  Response,
  Route,
  Security,
  SuccessResponse,
} from '@tsoa/runtime';
import type { RequestHandler } from 'express';
import { type Problem, type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import type {
  Fleet,
  PoolJobPage,
  PoolSettings,
  PoolSettingsInput,
} from '../../shared/contracts/fleet-contract.js';
import { Failure } from '../../shared/failures.js';
import type { FleetState } from '../../shared/fleet/fleet-state.js';
import { newOverridesSchema, type PoolOverrides } from '../../shared/protocol/settings.js';
import { invalid } from '../../shared/validation.js';
import type { AuthenticatedRequest } from '../access/caller.js';
import { tagAsSent } from '../http/conditional.js';
import { checkBody, readJsonBody } from '../http/json-body.js';
import { checkQuery } from '../http/query.js';
import type { OperatorSettings } from './operator-settings.js';
import { type JobQuery, jobQuery, listJobs, type PoolQueues } from './pool-jobs.js';

/** The dependencies of the operations on pools. */
export interface PoolsControllerDeps {
  fleet: Pick<FleetState, 'read'>;
  settings: Pick<OperatorSettings, 'read' | 'replace'>;
  queues: PoolQueues;
}

/** Before the body or the query is read. Throws `not_found`. */
const checkProvider: RequestHandler = ({ params }, _response, next) => {
  providerOf(String(params.provider));
  next();
};

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
   * Each setting with the value in force and where it comes from, as this API process knows them, also while the
   * database is down.
   *
   * @summary Get the settings of a provider's pools
   * @param provider Id of the provider.
   */
  @Get('{provider}')
  @Middlewares(checkProvider)
  @SuccessResponse<{ ETag: string }>('200', 'The settings', 'application/json')
  @Response<Problem>('404', 'No such provider')
  async getPoolSettings(@Path() provider: string): Promise<PoolSettings> {
    return this.#answer(this.deps.settings.read(providerOf(provider)));
  }

  /**
   * On every worker within a second; running calls go on. The body is all that shall replace the environment.
   *
   * @summary Change the settings of a provider's pools
   * @param provider Id of the provider.
   * @param ifMatch The `ETag` of the settings that the change is based on: 412, with who has changed them, unless it is
   * current.
   */
  @Put('{provider}')
  @Middlewares(checkProvider, readJsonBody, checkBody(newOverridesSchema))
  @SuccessResponse<{ ETag: string }>('200', 'The settings', 'application/json')
  @Response<Problem>('404', 'No such provider')
  @Response<Problem, { ETag: string }>('412', 'Somebody else has changed the settings')
  @Response<Problem, { 'Retry-After': string }>('503', 'Overloaded, or the database is unavailable')
  async replacePoolSettings(
    @Request() request: AuthenticatedRequest,
    @Path() provider: string,
    @Body() body: PoolSettingsInput,
    @Header('If-Match') ifMatch?: string,
  ): Promise<PoolSettings> {
    const changed = await this.deps.settings.replace({
      provider: providerOf(provider),
      overrides: body as PoolOverrides,
      expected: expectedVersion(ifMatch),
      changedBy: request.user.name,
    });
    return this.#answer(changed);
  }

  /**
   * Ids, times, attempts and users of the jobs in one state, and none of their texts: the waiting ones in the order in
   * which they will run, others the newest first. Jobs go on while you read: the next page may repeat or miss some.
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

  #answer(settings: PoolSettings): PoolSettings {
    this.setHeader('ETag', `"${settings.version}"`);
    return settings;
  }
}

/** Throws `not_found`. */
function providerOf(name: string): ProviderId {
  const provider = providerIds.find((id) => id === name);
  if (provider === undefined) throw new Failure('not_found');
  return provider;
}

/** Without the header the request is refused, so that no unseen change is lost. Unknown tags match no version. */
function expectedVersion(ifMatch = ''): number {
  const [, version] = /^"(0|[1-9]\d{0,8})"$/.exec(tagAsSent(ifMatch.trim())) ?? [];
  if (version !== undefined) return Number(version);
  throw invalid('If-Match', 'must be the ETag of the settings');
}
