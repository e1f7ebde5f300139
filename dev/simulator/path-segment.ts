/** Decodes a percent-encoded segment of a path; `undefined` if it is missing or not well-formed. */
export function decodeSegment(segment: string | undefined): string | undefined {
  if (segment === undefined) return undefined;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
