import { afterAll, beforeAll, describe } from 'vitest';
import { describeChats } from '../paths/chats.js';
import { type Deployment, type StartedApi, startDeployment } from '../support/deployment.js';
import { profiles } from '../support/profiles.js';

describe('with the queue in Redis', () => {
  let deployment: Deployment;
  let other: StartedApi;
  beforeAll(async () => {
    deployment = await startDeployment({ store: 'redis', variables: profiles.plain });
    other = await deployment.startApi();
  });
  afterAll(() => deployment?.stop());

  describeChats(() => ({ deployment, other }));
});
