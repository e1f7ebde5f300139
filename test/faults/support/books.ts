import { inject } from 'vitest';
import type { ChildProgram } from '../../../dev/child-program.js';
import {
  type ChatCall,
  type ChatReply,
  type Deployment,
  type DeploymentOptions,
  startDeployment,
} from '../../support/deployment.js';
import type { StreamCall } from '../../support/event-streams.js';
import { audit } from './audit.js';
import type { Balance, BooksRules } from './balance.js';
import { type AskedCompletion, type CompletionCall, createCompletions } from './completions.js';
import { type JobBoard, openJobBoard } from './job-board.js';
import { type Asked, createRequests } from './requests.js';
import { type AskedStream, createStreams } from './streams.js';

/** Runs the deployment of one case and keeps count of its requests. */
export interface Books {
  /** The deployment, once it was started. */
  readonly deployment: Deployment;
  /** The queues, seen from outside. */
  readonly jobs: JobBoard;
  /** Starts the case's one deployment, with the catalogue's profile: deadline 6 s, lock 3 s, stalled check 1 s. */
  start(options?: DeploymentOptions): Promise<Deployment>;
  /** Sends a request whose model has a mark of its own behind an `@`, unless it has one already. */
  ask(call?: ChatCall): Asked;
  /** The same, for the answer alone. */
  chat(call?: ChatCall): Promise<ChatReply>;
  /** Asks for a chat completion with a tool, in the same way. */
  complete(call?: CompletionCall): AskedCompletion;
  /** Asks for a stream, in the same way. */
  stream(call?: Partial<StreamCall>): AskedStream;
  /** Kills a program without a word to it, and waits until it is gone. */
  kill(program: ChildProgram | undefined): Promise<void>;
  /** Runs at the end, when the programs have ended; the last one first. */
  release(step: () => Promise<void> | void): void;
  /** Ends everything and gives the balance; what is left over gets this long to go away. */
  close(options: { rules: BooksRules; settleMs: number }): Promise<Balance | undefined>;
}

const profile = { CHAT_TIMEOUT_MS: '6000', WORKER_LOCK_MS: '3000', WORKER_STALLED_CHECK_MS: '1000' };

/** Opens the books of one case. */
export function openBooks(id: string): Books {
  const killed = new Set<ChildProgram>();
  const resources = new AsyncDisposableStack();
  let deployment: Deployment | undefined;
  let jobs: JobBoard | undefined;
  const running = (): Deployment => {
    if (deployment === undefined) throw new TypeError('the deployment was not started');
    return deployment;
  };
  const board = (): JobBoard => {
    jobs ??= openJobBoard(running());
    return jobs;
  };
  const requests = createRequests(id, running);

  return {
    get deployment() {
      return running();
    },
    get jobs() {
      return board();
    },
    start: async ({ variables, ...options } = {}) => {
      deployment = await startDeployment({
        store: inject('store'),
        ...options,
        variables: { ...profile, ...variables },
      });
      // In time for its first use; but BullMQ's queue in PostgreSQL never recovers from having been opened without it.
      if (options.withoutStore === undefined) await board().ready();
      return deployment;
    },
    ask: (call = {}) => requests.ask(call),
    chat: (call = {}) => requests.ask(call).reply,
    complete: createCompletions({ requests, deployment: running }),
    stream: createStreams({ requests, deployment: running }),
    kill: async (program) => {
      if (program === undefined) throw new TypeError('no such program');
      killed.add(program);
      process.kill(program.pid, 'SIGKILL');
      await program.exitCode;
    },
    release: (step) => resources.defer(step),
    close: async (options) => {
      try {
        if (deployment === undefined) return undefined;
        return await audit({ ...options, deployment, requests, jobs: board(), killed });
      } finally {
        await jobs?.close();
        await deployment?.stop();
        await resources.disposeAsync();
      }
    },
  };
}
