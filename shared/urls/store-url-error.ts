/** Thrown for the URL of a store that cannot be used; the message tells names of parameters, and never a value. */
export class StoreUrlError extends Error {
  override readonly name = 'StoreUrlError';
}
