import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, isStepCount, tool } from 'ai';
import { z } from 'zod';

const quillgate = createOpenAICompatible({
  name: 'quillgate',
  baseURL: process.env.OPENAI_BASE_URL,
  apiKey: process.env.OPENAI_API_KEY,
});
const { text } = await generateText({
  model: quillgate(process.env.MODEL),
  prompt: 'What is the weather in Bonn?',
  tools: {
    weather: tool({
      description: 'The weather in a city',
      inputSchema: z.object({ city: z.string() }),
      execute: ({ city }) => `It is sunny in ${city}.`,
    }),
  },
  stopWhen: isStepCount(5),
});
console.log(text);
