import type { ListedModel } from '../../shared/fleet/models.js';

/** A model that may be named here. */
export interface Model {
  /** `provider/model`. */
  id: string;
  object: 'model';
  /** When this server first heard of it, in seconds since the epoch. */
  created: number;
  /** Its provider. */
  owned_by: string;
}

/** Body of `GET /v1/models`. */
export interface ModelPage {
  object: 'list';
  data: Model[];
}

export const toModel = ({ provider, model, since }: ListedModel): Model => ({
  id: `${provider}/${model}`,
  object: 'model',
  created: Math.floor(since / 1000),
  owned_by: provider,
});
