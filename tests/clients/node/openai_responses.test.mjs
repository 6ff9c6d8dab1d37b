// Responses through the openai SDK for Node.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { failure, penstock } from './penstock.mjs';

const { model, question } = penstock;
const client = new OpenAI({ baseURL: penstock.baseURL, apiKey: 'none', maxRetries: 0 });

test('a response is the same streamed and whole', async () => {
  const asked = { model, input: question, temperature: 0 };
  const whole = await client.responses.create(asked);
  assert.equal(whole.status, 'completed');
  const events = [];
  for await (const event of await client.responses.create({ ...asked, stream: true }))
    events.push(event);
  assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, i) => i));
  assert.equal(events.at(-1).type, 'response.completed');
  assert.equal(events.at(-1).response.output[0].content[0].text, whole.output_text);
  assert.ok(whole.output_text);
});

test('the stream helper gathers the final response', async () => {
  const stream = client.responses.stream({ model, input: question, temperature: 0 });
  let text = '';
  stream.on('response.output_text.delta', (event) => (text += event.delta));
  assert.equal((await stream.finalResponse()).output_text, text);
});

test('parse gives an object of the asked shape', async () => {
  const Topic = z.object({ topic: z.string(), known: z.boolean() });
  const reply = await client.responses.parse({
    model,
    input: `${question} Answer in JSON.`,
    text: { format: zodTextFormat(Topic, 'topic') },
    temperature: 0,
    max_output_tokens: 200,
  });
  assert.ok(Topic.safeParse(reply.output_parsed).success);
});

test('errors are those of chat completions', async () => {
  const ask = (more) => failure(client.responses.create({ model, input: 'Hello', ...more }));
  assert.equal((await ask({ model: 'gpt-9' })).code, 'model_not_found');
  assert.equal((await ask({ temperature: 'hot' })).param, 'temperature');
  assert.equal((await ask({ input: penstock.tooLong })).code, 'context_length_exceeded');
  const loading = await ask({ model: penstock.loading });
  assert.equal(loading.status, 503);
  assert.ok(Number(loading.headers.get('retry-after')) >= 1);
});
