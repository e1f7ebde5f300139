import { Controller, Get, Middlewares, Queries, Route, Security, SuccessResponse } from '@tsoa/runtime';
import type { Samples } from '../../shared/history.js';
import { checkQuery } from '../http/query.js';
import { type SampleQuery, sampleQuery } from './history/history-query.js';
import type { HistoryControllerDeps } from './requests.controller.js';

@Route('admin/samples')
@Security('admin')
export class SamplesController extends Controller {
  constructor(private readonly deps: HistoryControllerDeps) {
    super();
  }

  /**
   * Ten minutes of measurements, one every five seconds for each provider. What waits and runs is the whole fleet's;
   * arrivals, ends and times are those of the known API processes. They are kept in memory,
   * and lost with their process.
   *
   * @summary Get the measurements of the last ten minutes
   */
  @Get()
  @Middlewares(checkQuery(sampleQuery))
  @SuccessResponse('200', 'The samples', 'application/json')
  async getSamples(@Queries() query: SampleQuery): Promise<Samples> {
    return this.deps.history.readSamples(query.provider);
  }
}
