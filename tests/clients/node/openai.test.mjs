// The openai SDK for Node: chat completions, streamed, stopped, structured; embeddings; models.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { backstage, endless, failure, penstock, user } from './penstock.mjs';

const { model, question } = penstock;
const client = new OpenAI({ baseURL: penstock.baseURL, apiKey: 'none', maxRetries: 0 });
const Topic = z.object({ topic: z.string(), known: z.boolean() });

test('a chat is answered the same streamed and whole', async () => {
  const asked = { model, messages: user(question), temperature: 0 };
  const whole = await client.chat.completions.create(asked);
  const stream = await client.chat.completions.create({ ...asked, stream: true });
  let text = '';
  for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? '';
  assert.ok(text);
  assert.equal(text, whole.choices[0].message.content);
  assert.equal(whole.choices[0].finish_reason, 'stop');
  assert.ok(whole._request_id);
});

test('the stream helper gathers the whole answer and its usage', async () => {
  const runner = client.chat.completions.stream({
    model,
    messages: user(question),
    stream_options: { include_usage: true },
  });
  let text = '';
  runner.on('content', (delta) => (text += delta));
  const final = await runner.finalChatCompletion();
  assert.equal(final.choices[0].message.content, text);
  assert.ok((await runner.totalUsage()).completion_tokens > 0);
});

test('parse gives an object of the asked shape', async () => {
  const reply = await client.chat.completions.parse({
    model,
    messages: user(`${question} Answer in JSON.`),
    response_format: zodResponseFormat(Topic, 'topic'),
    temperature: 0,
    max_tokens: 200,
  });
  assert.ok(Topic.safeParse(reply.choices[0].message.parsed).success);
});

test('a stream that is stopped leaves the engine idle', async () => {
  const stream = await client.chat.completions.create({
    model,
    messages: user(question),
    stream: true,
    ...endless,
  });
  for await (const chunk of stream) if (chunk.choices[0]?.delta?.content) break;
  await backstage('idle');
  assert.equal((await backstage('last-settled')).outcome, 'cancelled');
});

test('the models are listed and found by name', async () => {
  const names = [];
  for await (const one of client.models.list()) names.push(one.id);
  assert.ok(names.includes(model));
  for (const name of names) assert.equal((await client.models.retrieve(name)).id, name);
});

test('errors are of the classes that the SDK documents', async () => {
  for (const stream of [false, true]) {
    const ask = (more) =>
      failure(client.chat.completions.create({ model, messages: user('Hello'), stream, ...more }));
    const unknown = await ask({ model: 'gpt-9' });
    assert.ok(unknown instanceof OpenAI.NotFoundError, unknown);
    assert.equal(unknown.code, 'model_not_found');
    assert.equal(unknown.param, 'model');
    const wrong = await ask({ temperature: 'hot' });
    assert.ok(wrong instanceof OpenAI.BadRequestError, wrong);
    assert.equal(wrong.param, 'temperature');
    const long = await ask({ messages: user(penstock.tooLong) });
    assert.ok(long instanceof OpenAI.BadRequestError, long);
    assert.equal(long.code, 'context_length_exceeded');
    const loading = await ask({ model: penstock.loading });
    assert.ok(loading instanceof OpenAI.InternalServerError, loading);
    assert.equal(loading.status, 503);
    assert.ok(Number(loading.headers.get('retry-after')) >= 1);
    assert.ok(loading.requestID);
  }
});
