import { createTokenStore } from '../../db/access/tokens.js';
import { openDatabase } from '../../db/database/client.js';
import { digestOf, makeAccessToken } from '../../shared/access-token.js';
import type { Scope } from '../../shared/contract.js';
import { authorization, blogToken } from '../support/deployment.js';
import { createRecordingLog } from '../support/recording-log.js';

/** A token of each kind, and the user's credentials, by the name that plans use. */
export async function makeCredentials(url: string): Promise<Record<string, string>> {
  const database = openDatabase({ url, poolSize: 1, log: createRecordingLog().log });
  const tokens = createTokenStore(database);
  const make = async (scopes: Scope[], expiresAt?: Date) => {
    const secret = makeAccessToken();
    const { id } = await tokens.create({ owner: 'owner', scopes, expiresAt, secretHash: digestOf(secret) });
    return { id, secret };
  };
  try {
    const revoked = await make(['blogs:write']);
    await tokens.revoke(revoked.id);
    return {
      user: authorization.replace('Basic ', ''),
      writer: blogToken,
      stored: (await make(['blogs:write'])).secret,
      reader: (await make(['blogs:read'])).secret,
      chatter: (await make(['chat'])).secret,
      operator: (await make(['admin'])).secret,
      expired: (await make(['blogs:write'], new Date(0))).secret,
      revoked: revoked.secret,
    };
  } finally {
    await database.close();
  }
}
