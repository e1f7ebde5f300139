import { describe } from 'vitest';
import { fuzz, type OperationId, plans, readsAndChats } from './fuzz.js';

const others = (Object.keys(plans) as OperationId[]).filter((id) => !readsAndChats.includes(id));

describe('any request', () => fuzz(others));
