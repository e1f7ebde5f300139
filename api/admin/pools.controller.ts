import {
  Controller,
  Get,
  OperationId,
  Produces,
  Response,
  Route,
  Security,
  SuccessResponse,
  Tags,
} from '@tsoa/runtime';
import type { Problem } from '../../shared/contract.js';
import type { Fleet } from '../../shared/fleet.js';
import type { FleetState } from './fleet-state.js';

/** What the operations on pools need of the application. */
export interface PoolsControllerDeps {
  fleet: Pick<FleetState, 'read'>;
}

@Route('admin/pools')
@Tags('admin')
@Security('admin')
@Produces('application/problem+json')
@Response<Problem>('400', 'Bad request')
@Response<Problem, { 'WWW-Authenticate': string }>('401', 'No or wrong credentials')
@Response<Problem, { 'WWW-Authenticate': string }>('403', 'The token lacks the scope admin')
@Response<Problem, { Allow: string }>('405', 'Another method')
@Response<Problem, { 'Retry-After': string }>('429', 'Too many failed logins')
@Response<Problem, { 'Retry-After': string }>('500', 'Server error')
export class PoolsController extends Controller {
  constructor(private readonly deps: PoolsControllerDeps) {
    super();
  }

  /**
   * Every provider with its workers, as this API process knows them: from the heartbeats that they publish each second. A worker that
   * falls silent is shown as such within three seconds, and for a minute.
   *
   * @summary Get the state of the fleet
   */
  @Get()
  @OperationId('getFleet')
  @SuccessResponse('200', 'The fleet', 'application/json')
  async getFleet(): Promise<Fleet> {
    return this.deps.fleet.read();
  }
}
