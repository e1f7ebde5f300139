/** In case a notification is lost: a connection can die unnoticed. */
const everyMsByDefault = 30_000;
/** After a failure; sooner, because a user who was removed meanwhile must not stay for long. */
const retryMs = 2_000;
/** The pause between loads that callers can cause. */
const sharedPauseMs = 1_000;

/** Runs a load whenever it is asked to, every thirty seconds, and soon after a failure; one at a time. */
export class ReloadLoop {
  readonly #load: () => Promise<boolean>;
  readonly #everyMs: number;
  readonly #listeners = new Set<() => void>();
  #requested = false;
  #closed = false;
  #loading: Promise<void> | undefined;
  #shared: Promise<void> | undefined;
  #sharedPause: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  /** `load` says whether it succeeded, and never rejects. */
  constructor(load: () => Promise<boolean>, { everyMs = everyMsByDefault } = {}) {
    this.#load = load;
    this.#everyMs = everyMs;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Starts one more load: a running one may have read too early. Resolves after that; never rejects. */
  reload(): Promise<void> {
    this.#requested = true;
    this.#loading ??= this.#loadRequested();
    return this.#loading;
  }

  /** Reloads at most once a second; all calls until then share one load. For loads that users cause. */
  reloadShared(): Promise<void> {
    this.#shared ??= this.#sharedPause.then(() => {
      this.#shared = undefined;
      this.#sharedPause = new Promise((resolve) => void setTimeout(resolve, sharedPauseMs).unref());
      return this.reload();
    });
    return this.#shared;
  }

  /** Calls the listener after each load, also one that failed, until what is returned is called. */
  onLoad(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  async #loadRequested(): Promise<void> {
    clearTimeout(this.#timer);
    let isLoaded = true;
    while (this.#requested && !this.#closed) {
      this.#requested = false;
      isLoaded = await this.#load();
      for (const listener of this.#listeners) listener();
    }
    this.#loading = undefined;
    const pauseMs = isLoaded ? this.#everyMs : retryMs;
    if (!this.#closed) this.#timer = setTimeout(() => void this.reload(), pauseMs).unref();
  }
}
