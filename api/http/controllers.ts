import type { IocContainer, IocContainerFactory } from '@tsoa/runtime';
import type { Request } from 'express';

/** For the generated routes. What creates a controller is in `app.locals`, so that a test can build its own app. */
export const iocContainer: IocContainerFactory<Request> = (request): IocContainer => {
  const controllers = request.app.locals.controllers as ReadonlyMap<unknown, () => unknown>;
  return { get: <T>(controller: unknown) => controllers.get(controller)?.() as T };
};
