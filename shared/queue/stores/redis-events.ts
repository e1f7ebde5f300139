import type { RedisConnection } from './redis-connection.js';

/** A statement in a script of BullMQ that writes an event; no argument of one has parentheses. */
const eventWrite = /\brcall\("XADD",[^()]*"event",[^()]*\);?/g;
/** The events are trimmed once more for each job that ends. */
const eventTrim = /\brcall\("XTRIM", eventStreamKey,[^()]*\);?/g;

/**
 * Leaves the writing of events out of the scripts that are defined on the connection from now on: BullMQ has no switch
 * for it, its scripts write five for each chat, one of which repeats the result, and nothing reads them.
 */
export function writeNoEvents(redis: RedisConnection): void {
  const define = redis.defineCommand.bind(redis);
  redis.defineCommand = (name, { lua, ...definition }) =>
    define(name, { ...definition, lua: lua.replaceAll(eventWrite, '').replaceAll(eventTrim, '') });
}
