import OpenAI from 'openai';

const runner = new OpenAI().chat.completions.runTools({
  model: process.env.MODEL,
  messages: [{ role: 'user', content: 'What is the weather in Bonn?' }],
  tools: [
    {
      type: 'function',
      function: {
        name: 'weather',
        description: 'The weather in a city',
        parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
        parse: JSON.parse,
        function: ({ city }) => `It is sunny in ${city}.`,
      },
    },
  ],
});
console.log(await runner.finalContent());
