import type { ProviderId } from '../../shared/contract.js';
import type { ParameterName } from '../../shared/protocol/model-parameters.js';

const ofAll = ['maxOutputTokens', 'stop'] as const;
const ofBedrock = [...ofAll, 'temperature', 'topP'] as const;
const ofVertexAi = [...ofBedrock, 'seed', 'frequencyPenalty', 'presencePenalty'] as const;

/** The parameters of each provider's models; some only within limits. */
export const supportedParameters: Readonly<Record<ProviderId, ReadonlySet<ParameterName>>> = {
  openai: new Set([...ofVertexAi, 'reasoningEffort']),
  anthropic: new Set(ofAll),
  bedrock: new Set(ofBedrock),
  vertexai: new Set(ofVertexAi),
};
