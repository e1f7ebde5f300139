import { signal } from '@preact/signals';

/** The time, in milliseconds since 1970, once a second: for ages that are shown. */
export const now = signal(Date.now());

/** To be called once, when the page begins. */
export function startClock(): void {
  setInterval(() => {
    now.value = Date.now();
  }, 1000);
}
