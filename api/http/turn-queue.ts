/**
 * Does no more than so many pieces of work in one turn of the event loop, in the order they came; what there is no room for
 * waits for the turns that follow. However much arrives at once, timers, answers of the stores and heartbeats are seen
 * to between any two turns: in a turn of seconds an answer that lies in a socket would count as late.
 */
export class TurnQueue {
  readonly #perTurn: number;
  readonly #waiting: (() => void)[] = [];
  /** Begun in this turn. */
  #begun = 0;
  #isTurnWatched = false;

  constructor(perTurn: number) {
    this.#perTurn = perTurn;
  }

  /** Does the work, which must not throw, now or in a later turn. */
  run(work: () => void): void {
    this.#watchTurn();
    if (this.#begun < this.#perTurn && this.#waiting.length === 0) this.#begin(work);
    else this.#waiting.push(work);
  }

  #begin(work: () => void): void {
    this.#begun++;
    work();
  }

  #watchTurn(): void {
    if (this.#isTurnWatched) return;
    this.#isTurnWatched = true;
    setImmediate(() => {
      this.#isTurnWatched = false;
      this.#begun = 0;
      if (this.#waiting.length === 0) return;
      this.#watchTurn();
      for (const work of this.#waiting.splice(0, this.#perTurn)) this.#begin(work);
    });
  }
}
