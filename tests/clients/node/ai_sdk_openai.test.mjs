// Vercel's AI SDK with its provider for OpenAI, which speaks Responses unless it is told otherwise.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { embedMany, generateObject, generateText, streamText } from 'ai';
import { z } from 'zod';
import { failure, penstock } from './penstock.mjs';

const openai = createOpenAI({ baseURL: penstock.baseURL, apiKey: 'none' });
const model = openai(penstock.model);
const prompt = penstock.question;

test('generateText and streamText say the same', async () => {
  const whole = await generateText({ model, prompt, temperature: 0 });
  const stream = streamText({ model, prompt, temperature: 0 });
  assert.equal(await stream.text, whole.text);
  assert.ok(whole.text);
  assert.equal(await stream.finishReason, 'stop');
});

test('generateObject gives an object of the schema', async () => {
  const { object } = await generateObject({
    model,
    schema: z.object({ topic: z.string(), known: z.boolean() }),
    prompt: `${prompt} Answer in JSON.`,
    temperature: 0,
    maxOutputTokens: 200,
  });
  assert.equal(typeof object.known, 'boolean');
});

test('sentences are embedded', async () => {
  const { embeddings } = await embedMany({
    model: openai.embedding(penstock.embedder),
    values: ['The cat sleeps.', 'A gateway passes requests on.'],
  });
  assert.equal(embeddings.length, 2);
});

test('errors carry the status, the message and the headers', async () => {
  const ask = (more) => failure(generateText({ model, prompt, maxRetries: 0, ...more }));
  assert.equal((await ask({ model: openai('gpt-9') })).statusCode, 404);
  assert.equal((await ask({ topP: 7 })).statusCode, 400);
  assert.equal((await ask({ prompt: penstock.tooLong })).statusCode, 400);
  const loading = await ask({ model: openai(penstock.loading) });
  assert.equal(loading.statusCode, 503);
  assert.ok(Number(loading.responseHeaders['retry-after']) >= 1);
});
