import { HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';

const weather = tool(({ city }) => `It is sunny in ${city}.`, {
  name: 'weather',
  description: 'The weather in a city',
  schema: z.object({ city: z.string() }),
});
const model = new ChatOpenAI({
  model: process.env.MODEL,
  configuration: { baseURL: process.env.OPENAI_BASE_URL },
}).bindTools([weather]);

const messages = [new HumanMessage('What is the weather in Bonn?')];
const reply = await model.invoke(messages);
messages.push(reply);
for (const call of reply.tool_calls) messages.push(await weather.invoke(call));
console.log((await model.invoke(messages)).text);
