import type { NextFunction, Request, Response } from 'express';
import { Failure } from '../../shared/failures.js';

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whether a text has the form of an id. */
export const isUuid = (text: string): boolean => uuid.test(text);

/** Throws `not_found` unless the `id` of the path is a UUID: the stores would fail on other ids. */
export function checkUuidParam({ params: { id } }: Request, _response: Response, next: NextFunction): void {
  if (typeof id !== 'string' || !isUuid(id)) throw new Failure('not_found');
  next();
}
