import { type ProviderId, providerIds } from '../../../shared/contract.js';

/** The provider of the nth request, where each goes to another one than the request before. */
export const providerOf = (n: number): ProviderId => providerIds[n % providerIds.length] ?? 'openai';
