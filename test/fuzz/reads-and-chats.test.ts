import { describe } from 'vitest';
import { fuzz } from './fuzz.js';

describe('any request', () =>
  fuzz(['listPosts', 'getPost', 'jsonFeed', 'atomFeed', 'chat', 'getChat', 'createChatCompletion']));
