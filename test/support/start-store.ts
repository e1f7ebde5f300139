import type { TestProject } from 'vitest/node';
import { findRedisTopologies, findStores, type StoreServer, storeOf } from './stores.js';

declare module 'vitest' {
  interface ProvidedContext {
    store: StoreServer;
  }
}

/** vitest's global setup of a store's project: one server for all its test files. Returns the teardown. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const choices = [...findRedisTopologies(), ...(await findStores())];
  const choice = choices.find(({ name }) => name === storeOf(project.name));
  if (choice === undefined) throw new Error(`no store named ${project.name}`);
  const { server, stop } = await choice.start();
  project.provide('store', server);
  return stop;
}
