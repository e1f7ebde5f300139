import type { PoolSettings } from '../../shared/config/pool-settings.js';

/**
 * The settings of a pool while it runs. Whoever needs one reads it from `current` at the moment of use and keeps no copy,
 * so that a change takes effect at once; a job keeps the settings with which it began.
 */
export class LiveSettings {
  #current: PoolSettings;
  #version = 1;
  readonly #listeners: (() => void)[] = [];

  constructor(initial: PoolSettings) {
    this.#current = initial;
  }

  get current(): PoolSettings {
    return this.#current;
  }

  /** Grows by one with each change, from 1 when the process starts. */
  get version(): number {
    return this.#version;
  }

  /** Replaces all settings, then calls the listeners in the order in which they came. */
  replace(next: PoolSettings): void {
    this.#current = next;
    this.#version += 1;
    for (const listener of this.#listeners) listener();
  }

  /** Has the listener called after every change. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }
}
