import type { IocContainer, IocContainerFactory } from '@tsoa/runtime';
import type { Request } from 'express';

type Constructor<T> = abstract new (...args: never[]) => T;

/** Creates a controller for each request, from the dependencies of the application. */
export class Controllers {
  readonly #factories = new Map<unknown, () => unknown>();

  add<T>(controller: Constructor<T>, create: () => T): this {
    this.#factories.set(controller, create);
    return this;
  }

  get<T>(controller: Constructor<T>): T {
    const create = this.#factories.get(controller) as (() => T) | undefined;
    if (create === undefined) throw new TypeError(`no factory for ${controller.name}`);
    return create();
  }
}

/**
 * The generated routes get their controllers here. The factories are in `app.locals`: no module-level state, and a test
 * can build its own application.
 */
export const iocContainer: IocContainerFactory<Request> = (request): IocContainer => {
  const controllers = request.app.locals.controllers as Controllers;
  return { get: <T>(controller: unknown) => controllers.get(controller as Constructor<T>) };
};
