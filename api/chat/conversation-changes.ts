import { findUnsupported } from '../../shared/models/provider-support.js';
import { type ConversationChange, changesFor, listChanges } from '../../shared/protocol/alternating-turns.js';
import type { TurnsContent } from '../../shared/protocol/chat-content.js';
import { invalidRequest } from '../../shared/validation.js';
import type { ChatCommand } from './chat-command.js';

const header = 'X-Conversation-Changes';

/** The header that lists how a conversation was changed, here and for the provider that answered. */
export function changesHeader(...lists: (readonly string[] | undefined)[]): Record<string, string> {
  const changes = listChanges(...lists);
  return changes.length > 0 ? { [header]: changes.join(', ') } : {};
}

const remedies: Record<ConversationChange, string> = {
  'marked-system': 'has a system text where the provider takes none; put it before all other messages',
  continued: 'needs a message of the user that was not sent; begin and end with one',
  'results-first': 'has results of calls in another order; put them behind the calls, in their order',
  'dropped-blank': 'has blank text; leave it out',
};

interface Strict extends TurnsContent, Pick<ChatCommand, 'provider' | 'changes' | 'fallback' | 'isStrict'> {}

/** Throws `invalid_request` for a strict chat whose conversation a provider that may answer gets changed. */
export function refuseChanges({
  provider,
  turns,
  changes,
  parameters = {},
  fallback = [],
  isStrict,
}: Strict) {
  if (!isStrict) return;
  // One that cannot do it at all is not asked.
  const able = fallback.filter((target) => !findUnsupported(target.provider, parameters));
  const targets = [...new Set([provider, ...able.map((target) => target.provider)])];
  const needs = targets.map((target) => ({ target, needed: changesFor(target, turns) }));
  const errors = listChanges(changes, ...needs.map(({ needed }) => needed)).map((name) => {
    const needing = needs.filter(({ needed }) => needed.includes(name)).map(({ target }) => target);
    // What is changed here is changed for all.
    const isForAll = needing.length === 0 || changes?.includes(name);
    const named = isForAll ? name : `${name} for ${needing.join(', ')}`;
    return { pointer: '/messages', detail: `${remedies[name]} (${named})` };
  });
  if (errors.length > 0) throw invalidRequest(errors);
}
