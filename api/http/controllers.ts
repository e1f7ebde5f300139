import type { IocContainer, IocContainerFactory } from '@tsoa/runtime';
import type { Request } from 'express';

/**
 * The generated routes get a controller for each request here. What creates them is in `app.locals`: no module-level
 * state, and a test can build its own application.
 */
export const iocContainer: IocContainerFactory<Request> = (request): IocContainer => {
  const controllers = request.app.locals.controllers as ReadonlyMap<unknown, () => unknown>;
  return { get: <T>(controller: unknown) => controllers.get(controller)?.() as T };
};
