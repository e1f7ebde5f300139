import type { NextFunction, Request, Response } from 'express';
import { Failure } from '../../shared/failures.js';

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The stores fail on ids that are no UUIDs, or hold them in vain; there is nothing at such an address. */
export function checkUuidParam({ params: { id } }: Request, _response: Response, next: NextFunction): void {
  if (typeof id !== 'string' || !uuid.test(id)) throw new Failure('not_found');
  next();
}
