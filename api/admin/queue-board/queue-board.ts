import { type RequestHandler, Router } from 'express';
import helmet from 'helmet';
import { Failure } from '../../../shared/failures.js';
import { expressAuthentication } from '../../access/authentication.js';
import { prefersHtml } from '../../http/accept.js';
import { methodNotAllowed } from '../../http/problem.js';
import type { BoardQueues } from './textless-queue.js';

/** Where the board is; below `/admin`, where the session of the console is valid. */
const boardPath = '/admin/queues';

/**
 * Bull Board below `/admin/queues`, for operators and for reading alone: no text of a job gets as far as this process' answers, and no
 * method but GET and HEAD further than here. Its code is loaded when somebody looks.
 */
export function queueBoard(queues: BoardQueues): Router {
  const router = Router({ caseSensitive: true, strict: true });
  let board: Promise<RequestHandler> | undefined;
  const open = async () => (await import('./bull-board.js')).openBullBoard(queues, boardPath);
  const show: RequestHandler = async (request, response, next) => {
    board ??= open().catch((error) => {
      board = undefined;
      throw error;
    });
    (await board)(request, response, next);
  };
  // Not by `router.use`, which would take the path off the address.
  router.all(
    [boardPath, `${boardPath}/*path`, `${boardPath}/`],
    requireReading,
    requireOperator,
    security,
    show,
  );
  return router;
}

const requireReading: RequestHandler = (request, response, next) =>
  ['GET', 'HEAD'].includes(request.method) ? next() : methodNotAllowed('GET, HEAD')(request, response, next);

/** Who opens a page without being signed in is sent to where that is done. */
const requireOperator: RequestHandler = async (request, response, next) => {
  try {
    await expressAuthentication(request, 'admin');
    next();
  } catch (error) {
    const isStranger = error instanceof Failure && error.code === 'unauthorized';
    if (!isStranger || !prefersHtml(request)) throw error;
    response.redirect(302, '/admin');
  }
};

/** As that of the console, but for the thread that colours what is shown, and the base of the page's addresses. */
const security = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      imgSrc: ["'self'"],
      connectSrc: ["'self'"],
      workerSrc: ["'self'"],
      baseUri: ["'self'"],
      formAction: ["'none'"],
      frameAncestors: ["'none'"],
    },
  },
  // HTTPS is up to the proxy in front.
  strictTransportSecurity: false,
  xFrameOptions: { action: 'deny' },
});
