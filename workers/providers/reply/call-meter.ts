import type { IncomingHttpHeaders } from 'node:http';
import type { Usage } from '../../../shared/protocol/attempts.js';

/** What an answer has said of its cost until its call ended. */
export interface Heard {
  /** The counts that were told, of one side alone too. */
  usage: { readonly [Count in keyof Usage]?: number | undefined };
  /** The model that answered, the tier of service, and the provider's id of the answer, in the provider's words. */
  model?: string | undefined;
  tier?: string | undefined;
  answerId?: string | undefined;
  /** Whether the provider has said that the reply is complete. */
  isComplete: boolean;
  /** The bytes of texts, thinking and arguments that came. */
  bytes: number;
}

/** Hears what a call costs, as it becomes known. */
export interface CallMeter {
  /** A connection has taken a request of the call. */
  sent(): void;
  /** An answer to it begins. */
  head(answer: { readonly status: number; readonly headers: IncomingHttpHeaders }): void;
  /** The call has ended. */
  heard(heard: Heard): void;
}
