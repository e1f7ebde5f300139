import { readFile } from 'node:fs/promises';
import OpenAI from 'openai';

const url = `data:image/png;base64,${await readFile(process.argv[2], 'base64')}`;
const completion = await new OpenAI().chat.completions.create({
  model: process.env.MODEL,
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is in this picture?' },
        { type: 'image_url', image_url: { url } },
      ],
    },
  ],
});
console.log(completion.choices[0].message.content);
