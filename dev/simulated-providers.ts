import { type Config, namesSet } from '../shared/config/config.js';
import { credentialVariables, hasCredentials } from '../shared/config/provider-credentials.js';
import type { ProviderId } from '../shared/contract.js';

/** Which providers `npm start` simulates: those it runs without credentials. */
export const simulatedProviders = (config: Config): ProviderId[] =>
  config.WORKER_PROVIDERS.filter((id) => !hasCredentials(namesSet(config), id));

/** The variables that make a simulated provider real, in words. */
export const toMakeReal = (id: ProviderId): string =>
  `${credentialVariables[id]}, and ${id.toUpperCase()}_MODEL for requests that name no model`;
