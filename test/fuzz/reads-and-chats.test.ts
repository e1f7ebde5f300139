import { describe } from 'vitest';
import { fuzz } from './fuzz.js';

describe('any request', () =>
  fuzz([
    ...(['listPosts', 'getPost', 'jsonFeed', 'atomFeed', 'chat', 'getChat'] as const),
    ...(['createChatCompletion', 'listModels', 'getModel'] as const),
  ]));
