import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { Failure } from '../failures.js';
import {
  type ChatBytes,
  type ChatTexts,
  type ChatValues,
  type FilledText,
  type Filling,
  type JsonTask,
  jsonThreadName,
  type ReadJson,
  type TreeLimits,
} from './json-worker.js';

/**
 * Reads and writes large JSON texts in a thread, which begins with the first of them and keeps no process alive: the
 * event loop is held up only while values are copied, which for long strings takes a few milliseconds. One task at a
 * time. A thread that runs out of memory fails its task with `overloaded`, and the next task gets another thread.
 */
export class JsonThread {
  #worker: Worker | undefined;
  #last: Promise<unknown> = Promise.resolve();

  /** See `readJson`. The memory of the bytes goes over to the thread; it must not be Node's pool. */
  read(bytes: Uint8Array<ArrayBuffer>, limits: TreeLimits): Promise<ReadJson> {
    return this.#run<ReadJson>({ read: bytes, limits }, [bytes.buffer]);
  }

  /** See `writeChat`. */
  write(values: ChatValues): Promise<ChatTexts | ChatBytes> {
    return this.#run<ChatTexts | ChatBytes>({ write: values });
  }

  /** See `fillText`. */
  async fill(filling: Filling): Promise<Uint8Array<ArrayBuffer>> {
    return (await this.#run<FilledText>({ fill: filling })).bytes;
  }

  /** Ends the thread, if there is one; the task that it works on fails. */
  async end(): Promise<void> {
    await this.#worker?.terminate();
  }

  #run<T>(task: JsonTask, transfer: ArrayBuffer[] = []): Promise<T> {
    const result = this.#last.then(() => this.#ask(task, transfer) as Promise<T>);
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #ask(task: JsonTask, transfer: ArrayBuffer[]): Promise<unknown> {
    this.#worker ??= this.#start();
    const answered = new AbortController();
    const { signal } = answered;
    const message = once(this.#worker, 'message', { signal });
    const exit = once(this.#worker, 'exit', { signal });
    try {
      this.#worker.postMessage(task, transfer);
      const [first] = await Promise.race([message, exit.then(() => Promise.reject(new Error('has ended')))]);
      return first;
    } catch (cause) {
      throw new Failure('overloaded', { cause, retryAfterMs: 1000 });
    } finally {
      for (const waiting of [message, exit]) waiting.catch(() => undefined);
      answered.abort();
    }
  }

  #start(): Worker {
    const worker = new Worker(program, {
      name: jsonThreadName,
      workerData: jsonThreadName,
      execArgv: [],
      resourceLimits,
    });
    worker.unref();
    const forget = () => {
      if (this.#worker === worker) this.#worker = undefined;
    };
    // Without the first listener an error would end the process; its task hears of it by itself.
    worker.once('error', forget).once('exit', forget);
    return worker;
  }
}

/** JavaScript or TypeScript, like this file itself. */
const program = new URL(`json-worker${import.meta.url.slice(-3)}`, import.meta.url);

/** Enough for four times the largest body that can be set, which a text takes of which one character is no Latin-1. */
const resourceLimits = { maxOldGenerationSizeMb: 1024 };
