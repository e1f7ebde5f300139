import { describe } from 'vitest';
import { fuzz, readsAndChats } from './fuzz.js';

describe('any request', () => fuzz(readsAndChats));
