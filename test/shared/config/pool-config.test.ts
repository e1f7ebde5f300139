import { describe, expect, it } from 'vitest';
import { parseConfig } from '../../../shared/config/config.js';
import { configuredSettings, defaultSettings } from '../../../shared/config/pool-config.js';

describe('configuredSettings', () => {
  it('has what the environment sets of a provider, and not what is at its default', () => {
    const config = parseConfig(
      { OPENAI_CONCURRENCY: '7', OPENAI_TIMEOUT_MS: '45000', OPENAI_MODELS: 'n-*', BEDROCK_CONCURRENCY: '9' },
      'config',
    );
    expect(configuredSettings(config, 'openai')).toEqual({ concurrency: 7, models: ['n-*'] });
    expect(defaultSettings('openai')).toMatchObject({ timeoutMs: 45_000 });
  });
});
