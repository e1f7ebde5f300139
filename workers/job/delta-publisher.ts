import type { Target } from '../../shared/contracts/contract.js';
import type { ChatJob } from '../../shared/protocol/messages.js';
import type { Resend } from '../../shared/protocol/parts.js';
import { ApiLink, type ApiLinkDeps } from './api-link.js';
import { DeltaStream } from './delta-stream.js';
import type { RunningJob } from './running-job.js';
import type { RunningJobs } from './running-jobs.js';

interface DeltaPublisherDeps extends ApiLinkDeps {
  /** The jobs of this process. */
  jobs: Pick<RunningJobs, 'ofChat'>;
}

/**
 * Sends the replies that this process writes, piece by piece, to the API processes where they are read: each job has a
 * `delta-stream.ts`, each API process an `api-link.ts`. Its memory is the only place that has an unfinished text, so a
 * reader who lacks a part of it asks here (`resend`): all workers of the provider hear that, and the one with the job
 * sends its text from there on. At the API the pieces reach the readers by `api/fleet-link/connection.ts`.
 */
export class DeltaPublisher {
  readonly #links = new Map<string, ApiLink>();

  constructor(private readonly deps: DeltaPublisherDeps) {}

  /** The stream of a job's reply, to be disposed of; `writer` is its model, if the request names another one. */
  open(job: RunningJob, chat: Pick<ChatJob, 'replyTo'>, writer?: Target): DeltaStream {
    const stream = new DeltaStream({
      jobId: job.chatId,
      writer,
      facts: () => job.progress,
      onClose: () => {
        job.deltas = undefined;
      },
    });
    job.deltas = stream;
    stream.place(this.#linkTo(chat.replyTo), { from: 0 });
    return stream;
  }

  /** Sends the text from `from` on to the reader, or nothing more if it has left. Ignores jobs that do not run here. */
  onResend({ jobId, api, left, ...place }: Resend): void {
    const stream = this.deps.jobs.ofChat(jobId).findLast(({ deltas }) => deltas)?.deltas;
    if (left) stream?.remove(api, place.reader);
    if (left || stream === undefined) return;
    const link = this.#linkTo(api);
    // Also if there is nothing new: the reader learns of which call the text is, and how far it has got.
    link.report(stream.place(link, place));
  }

  #linkTo(api: string): ApiLink {
    const link = this.#links.get(api) ?? new ApiLink(api, this.deps, () => this.#links.delete(api));
    this.#links.set(api, link);
    return link;
  }
}
