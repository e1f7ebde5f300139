/**
 * Starts at most `perTurn` tasks in one turn of the event loop, in order; the rest wait for later turns. So timers,
 * answers of the stores and heartbeats are handled in between, however many tasks arrive at once: in a turn that takes
 * seconds, an answer that already waits in a socket would count as late.
 */
export class TurnQueue {
  readonly #perTurn: number;
  readonly #waiting: (() => void)[] = [];
  #started = 0;
  #isTurnWatched = false;

  constructor(perTurn: number) {
    this.#perTurn = perTurn;
  }

  /** Starts the task, which must not throw, now or in a later turn. */
  run(task: () => void): void {
    this.#watchTurn();
    if (this.#started < this.#perTurn && this.#waiting.length === 0) this.#start(task);
    else this.#waiting.push(task);
  }

  #start(task: () => void): void {
    this.#started++;
    task();
  }

  #watchTurn(): void {
    if (this.#isTurnWatched) return;
    this.#isTurnWatched = true;
    setImmediate(() => {
      this.#isTurnWatched = false;
      this.#started = 0;
      if (this.#waiting.length === 0) return;
      this.#watchTurn();
      for (const task of this.#waiting.splice(0, this.#perTurn)) this.#start(task);
    });
  }
}
