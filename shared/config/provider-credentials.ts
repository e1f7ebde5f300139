import type { ProviderId } from '../contracts/contract.js';

/** The variables that give a provider its credentials, in words for people. */
export const credentialVariables: Record<ProviderId, string> = {
  openai: 'OPENAI_API_KEY',
  anthropic: 'ANTHROPIC_API_KEY',
  bedrock: 'AWS_REGION (with credentials from the AWS chain)',
  vertexai: 'GOOGLE_CLOUD_PROJECT or GOOGLE_API_KEY',
};

/** Any one of these sets of variables is enough to call the provider. */
const sufficient: Record<ProviderId, readonly (readonly string[])[]> = {
  openai: [['OPENAI_API_KEY']],
  anthropic: [['ANTHROPIC_API_KEY']],
  // The AWS chain also finds roles and profiles that no variable shows.
  bedrock: [['AWS_REGION']],
  vertexai: [['GOOGLE_API_KEY'], ['GOOGLE_CLOUD_PROJECT']],
};

/** Whether the simulator plays a provider, given the names of the set variables: it gets no real credential. */
export const isSimulated = (names: ReadonlySet<string>, id: ProviderId): boolean =>
  names.has('SIMULATOR_URL') && !isBesideReal(names) && !hasCredentials(names, id);

/** Whether some provider of the installation is real, perhaps for other workers alone: then no reply is invented. */
export const isBesideReal = (names: ReadonlySet<string>): boolean => names.has('REAL_PROVIDERS');

/** Whether the variables that are set, by name, have what it takes to call a provider. */
export function hasCredentials(names: ReadonlySet<string>, id: ProviderId): boolean {
  return sufficient[id].some((variables) => variables.every((name) => names.has(name)));
}
