/** Thrown for an invalid URL of a store; the message may name parameters, but never quotes a value. */
export class StoreUrlError extends Error {
  override readonly name = 'StoreUrlError';
}
