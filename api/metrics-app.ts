import express, { type Express } from 'express';
import { type AppDeps, nameRequest } from './app.js';
import { methodNotAllowed, notFound, problemHandler } from './http/problem.js';
import { livez, readyz } from './operations/health-routes.js';
import { metricsPage } from './operations/metrics-route.js';

export type MetricsAppDeps = Pick<
  AppDeps,
  'store' | 'database' | 'linked' | 'draining' | 'instruments' | 'log'
>;

/**
 * What `METRICS_PORT` serves: `/metrics` and the health pages, for those who watch the process and for nobody else. The
 * requests are not logged: a scrape every few seconds is no outcome.
 */
export function createMetricsApp(deps: MetricsAppDeps): Express {
  const app = express().disable('x-powered-by').disable('etag');
  app.set('case sensitive routing', true).set('strict routing', true);
  app.use(nameRequest(deps.draining));
  app.route('/livez').get(livez).all(methodNotAllowed('GET, HEAD'));
  app.route('/readyz').get(readyz(deps)).all(methodNotAllowed('GET, HEAD'));
  app.route('/metrics').get(metricsPage(deps.instruments)).all(methodNotAllowed('GET, HEAD'));
  app.use(notFound);
  app.use(problemHandler(deps.log));
  return app;
}
