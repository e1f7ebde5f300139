import { describe } from 'vitest';
import { fuzz } from './fuzz.js';

describe('any request', () =>
  fuzz([
    ...(['createPost', 'replacePost', 'patchPost', 'deletePost', 'cancelChat'] as const),
    ...([
      'listModels',
      'getModel',
      'getFleet',
      'getPoolSettings',
      'replacePoolSettings',
      'listJobs',
      'followFleet',
      'listRequests',
      'getSamples',
      ...([
        'listUsers',
        'createUser',
        'resetSecret',
        'removeUser',
        'listTokens',
        'createToken',
        'revokeToken',
        'listAudit',
        'preview',
      ] as const),
    ] as const),
  ]));
