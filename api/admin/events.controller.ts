import {
  Controller,
  Get,
  Middlewares,
  Queries,
  Request,
  Response,
  Route,
  Security,
  SuccessResponse,
} from '@tsoa/runtime';
import type { Response as HttpResponse } from 'express';
import type { Problem } from '../../shared/contracts/contract.js';
import type { AuthenticatedRequest } from '../access/caller.js';
import { mayStillOperate } from '../access/operators.js';
import { checkQuery } from '../http/query.js';
import type { FleetEvents } from './fleet-events.js';
import { type EventsQuery, eventsQuery, wantedHistory } from './history/history-query.js';

/** The dependencies of the stream of the fleet's state. */
export interface EventsControllerDeps {
  events: Pick<FleetEvents, 'follow' | 'answerHead'>;
}

@Route('admin/events')
@Security('admin')
@Response<Problem, { 'Retry-After': string }>('429', 'Too many failed logins, or too many streams')
export class EventsController extends Controller {
  constructor(private readonly deps: EventsControllerDeps) {
    super();
  }

  /**
   * The state of the fleet as server-sent events: first a `snapshot`, which is that of `GET /admin/pools`; then a
   * `provider` (one of its `providers`) or a `queue` (its `queue`) whenever that has changed, with its whole state.
   * When none of all that has been sent for about a second, an `alive` (`{"at": …}`, the time of the look that found
   * nothing new) is: a stream that sends nothing for longer than 2.5 s hangs, and is to be opened anew. With
   * `include=requests` each chat that ends from now on is a `request`, as in `GET /admin/requests`; when there are more
   * than a hundred since the last event, or the client has not read for so long, `missed` (`{"requests": 130}`) says
   * that the list is to be read again. With `include=samples` each new measurement is a `sample`, as in
   * `GET /admin/samples`. It ends with an `error` (a problem) when the token or the session is no longer valid, and
   * without one when the server stops; a client that comes back gets a snapshot. A user may have 20 streams at each API
   * process.
   *
   * @summary Follow the state of the fleet
   */
  @Get()
  @Middlewares(checkQuery(eventsQuery))
  @SuccessResponse<{ 'X-Accel-Buffering': string }>(
    '200',
    'Events, until one of both leaves',
    'text/event-stream',
  )
  async followFleet(
    @Request() request: AuthenticatedRequest,
    @Queries() query: EventsQuery,
  ): Promise<string> {
    const { events } = this.deps;
    const response = request.res as HttpResponse;
    if (request.method === 'HEAD') events.answerHead(response);
    else
      await events.follow(response, {
        user: request.user.id,
        isAllowed: () => mayStillOperate(request),
        include: wantedHistory(query),
      });
    return alreadySent;
  }
}

/** The body that the generated route gets to send; the response has ended by then. */
const alreadySent = '';
