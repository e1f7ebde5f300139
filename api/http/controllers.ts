import type { IocContainer, IocContainerFactory } from '@tsoa/runtime';
import type { Request } from 'express';

/** Creates each controller from the dependencies of the application. */
export type Controllers = Map<unknown, () => unknown>;

/**
 * The generated routes get a controller for each request here. What creates them is in `app.locals`: no module-level
 * state, and a test can build its own application.
 */
export const iocContainer: IocContainerFactory<Request> = (request): IocContainer => {
  const controllers = request.app.locals.controllers as Controllers;
  return { get: <T>(controller: unknown) => controllers.get(controller)?.() as T };
};
