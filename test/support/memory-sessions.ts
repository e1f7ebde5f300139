import type { ActiveSession, SessionStore } from '../../db/access/sessions.js';
import { Failure } from '../../shared/failures.js';

/** The sessions as the database would keep them, in memory; it can be taken down. */
export class MemorySessions implements SessionStore {
  isDown = false;
  rows: ActiveSession[] = [];

  async create({ digest, user: { id, name }, lifetimeMs }: Parameters<SessionStore['create']>[0]) {
    this.#reach();
    const expiresAt = new Date(Date.now() + lifetimeMs);
    const user = { id, name, createdAt: new Date(0), role: 'admin' as const };
    this.rows.push({ digest, userId: id, userName: name, expiresAt, expiresInMs: lifetimeMs, user });
    return expiresAt;
  }

  async find(digests: readonly Buffer[]) {
    this.#reach();
    return this.rows.find((row) => digests.some((digest) => digest.equals(row.digest)));
  }

  async listActive() {
    this.#reach();
    return [...this.rows];
  }

  async end(digest: Buffer) {
    this.#reach();
    this.rows = this.rows.filter((row) => !row.digest.equals(digest));
  }

  async endAll(userName: string) {
    this.#reach();
    this.rows = this.rows.filter((row) => row.userName !== userName);
  }

  #reach(): void {
    if (this.isDown) throw new Failure('database_unavailable');
  }
}
