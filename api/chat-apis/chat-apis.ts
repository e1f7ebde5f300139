import { anthropicMessages } from './anthropic-messages/anthropic-messages.js';
import type { ChatApi } from './chat-api.js';
import { openAiChat } from './openai-chat/openai-chat.js';

/** The APIs of others that this server speaks, beside its own. A further one is a folder here, and a line. */
export const chatApis: readonly ChatApi[] = [openAiChat, anthropicMessages];
