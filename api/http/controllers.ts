import type { IocContainer, IocContainerFactory } from '@tsoa/runtime';
import type { Request } from 'express';

type Constructor<T> = abstract new (...args: never[]) => T;

/** Makes controllers, one for each request, from what the application was built with. */
export class Controllers {
  readonly #makers = new Map<unknown, () => unknown>();

  add<T>(controller: Constructor<T>, make: () => T): this {
    this.#makers.set(controller, make);
    return this;
  }

  get<T>(controller: Constructor<T>): T {
    const make = this.#makers.get(controller) as (() => T) | undefined;
    if (make === undefined) throw new TypeError(`no maker for ${controller.name}`);
    return make();
  }
}

/**
 * Asked by the generated routes. The makers are in `app.locals`, so that there is no container and no module-level
 * state, and a test can build an application of its own.
 */
export const iocContainer: IocContainerFactory<Request> = (request): IocContainer => {
  const controllers = request.app.locals.controllers as Controllers;
  return { get: <T>(controller: unknown) => controllers.get(controller as Constructor<T>) };
};
