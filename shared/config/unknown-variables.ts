import leven from 'leven';
import { type Environment, environmentSchema } from './config.js';

const ours = Object.keys(environmentSchema.shape);
/** No library reads names that begin like these, except those below. */
const prefixes = /^(OPENAI|ANTHROPIC|BEDROCK|VERTEXAI|CHAT|BLOG|WORKER|BREAKER)_/;
/** The variables that others read: the providers' SDKs, programs with proxies, and those of Kubernetes' services. */
const foreign =
  /^((ALL|HTTP)_PROXY|OPENAI_(ADMIN_KEY|API_VERSION|CUSTOM_HEADERS|ENDPOINT|LOG|ORG_ID|PROJECT_ID|WEBHOOK_SECRET)|ANTHROPIC_(AUTH_TOKEN|CONFIG_DIR|CUSTOM_HEADERS|ENVIRONMENT_\w+|FEDERATION_RULE_ID|IDENTITY_TOKEN(_FILE)?|LOG|OPEN_TELEMETRY\w*|ORGANIZATION_ID|PROFILE|SCOPE|SERVICE_ACCOUNT_ID|WEBHOOK_SIGNING_KEY|WORK\w+)|\w+_(SERVICE_(HOST|PORT\w*)|PORT_\d+_(TCP|UDP)\w*))$/;

/** A line, without the value, for each unknown variable that has one and is nearly named, or begins, like ours. */
export const unknownVariables = (environment: Environment): string[] =>
  Object.entries(environment).flatMap(([name, value]) => {
    if (!value?.trim() || ours.includes(name) || foreign.test(name)) return [];
    const meant = ours.find((our) => isNear(name, our));
    if (meant !== undefined) return [ignored(name, meant)];
    if (!prefixes.test(name)) return [];
    const longer = ours.find((our) => our.startsWith(`${name}_`));
    return [ignored(name, longer)];
  });

const ignored = (name: string, meant: string | undefined): string =>
  `Unknown variable ${name} is ignored.${meant ? ` Did you mean ${meant}?` : ''}`;

/** Two letters of a short name make another word, unless they have changed places: HOME is not HOST. */
function isNear(name: string, our: string): boolean {
  if (Math.abs(name.length - our.length) > 2) return false;
  const distance = leven(name, our);
  return distance === 1 || (distance === 2 && (our.length > 7 || lettersOf(name) === lettersOf(our)));
}

const lettersOf = (name: string): string => [...name].sort().join('');
