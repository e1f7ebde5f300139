import type { Kind } from './mix.js';

/** What became of every request that was sent. */
export class Books {
  sent = 0;
  /** Callers who went on purpose before an answer came. */
  left = 0;
  /** Requests whose connection broke, or that nobody answered in time. */
  unanswered = 0;
  /** Requests that were not sent because too many were on their way already. */
  heldBack = 0;
  /** Answers that were not what their kind of request must get, as `model: answer`. */
  readonly wrong = new Map<string, number>();
  readonly #byAnswer = new Map<string, number>();

  /** Enters an answer: `200` or the code of a problem. */
  answered(kind: Kind, answer: string): void {
    add(this.#byAnswer, answer);
    if (!kind.answers.includes(answer)) add(this.wrong, `${kind.model}: ${answer}`);
  }

  get inFlight(): number {
    return this.sent - this.left - this.unanswered - this.answers;
  }

  get answers(): number {
    return [...this.#byAnswer.values()].reduce((sum, count) => sum + count, 0);
  }

  get wrongAnswers(): number {
    return [...this.wrong.values()].reduce((sum, count) => sum + count, 0);
  }

  /** All of it in one line, for people. */
  describe(): string {
    const answers = [...this.#byAnswer].toSorted().map(([answer, count]) => `${count} × ${answer}`);
    return `${this.sent} sent: ${answers.join(', ')}, ${this.left} left, ${this.unanswered} unanswered; ${this.heldBack} held back`;
  }
}

const add = (counts: Map<string, number>, name: string): void =>
  void counts.set(name, (counts.get(name) ?? 0) + 1);
