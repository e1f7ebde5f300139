import { type ProviderId, providerIds } from '../contracts/contract.js';
import type { Heartbeats } from './heartbeats.js';

/** A model that callers may name. */
export interface ListedModel {
  readonly provider: ProviderId;
  /** The provider's own name. */
  readonly model: string;
  /** The time at which this process first saw the model, in milliseconds since the epoch. */
  readonly since: number;
}

/** The models that pools name in their heartbeats; those of a provider without a worker stay for ten minutes. */
export const listModels = (heartbeats: Heartbeats): ListedModel[] =>
  providerIds.flatMap((provider) => heartbeats.modelsOf(provider).map((model) => ({ provider, ...model })));
