import fc from 'fast-check';
import type { Header } from './client.js';
import type { Plan } from './plan.js';

/** Change of a plan that leaves it with one thing that is odd. */
export type Twist = Partial<Plan>;

/** A header with any of the values. */
export const one = (name: string, values: fc.Arbitrary<string>): fc.Arbitrary<Header[]> =>
  values.map((value) => [[name, value]]);

/** Every character that a header may hold; in latin1, as Node sends it. */
export const headerText = fc.string({
  unit: fc
    .integer({ min: 0x20, max: 0xff })
    .filter((code) => code !== 0x7f)
    .map((code) => String.fromCharCode(code)),
  maxLength: 60,
});
