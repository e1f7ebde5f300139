/** A failure concerns its user, and all users if the one before was another user's with no answer in between. */
export class Blame {
  /** Who failed last; undefined after an answer. */
  #last: { readonly user: string } | undefined;

  /** A call was answered. */
  answered(): void {
    this.#last = undefined;
  }

  /** Takes a failure of this user's call. Whether it concerns all, as one without a user always does. */
  concernsAll(user: string | undefined): boolean {
    if (user === undefined) return true;
    const isOthers = this.#last !== undefined && this.#last.user !== user;
    this.#last = { user };
    return isOthers;
  }
}
