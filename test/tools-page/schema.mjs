import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';

const City = z.object({ name: z.string(), country: z.enum(['Germany', 'France']) });
const completion = await new OpenAI().chat.completions.parse({
  model: process.env.MODEL,
  messages: [{ role: 'user', content: 'Which city lies on the Rhine?' }],
  response_format: zodResponseFormat(City, 'city'),
});
console.log(completion.choices[0].message.parsed.country);
