// Vercel's AI SDK with its provider for OpenAI-compatible servers, which speaks chat completions.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, streamText } from 'ai';
import { backstage, endless, failure, penstock } from './penstock.mjs';

const provider = createOpenAICompatible({
  name: 'penstock',
  baseURL: penstock.baseURL,
  includeUsage: true,
});
const model = provider(penstock.model);
const prompt = penstock.question;

test('generateText and streamText say the same', async () => {
  const whole = await generateText({ model, prompt, temperature: 0 });
  const stream = streamText({ model, prompt, temperature: 0 });
  assert.equal(await stream.text, whole.text);
  assert.ok(whole.text);
  assert.equal(await stream.finishReason, 'stop');
  assert.ok((await stream.usage).outputTokens > 0);
});

test('a stream that is aborted leaves the engine idle', async () => {
  const abort = new AbortController();
  const stream = streamText({
    model,
    prompt,
    maxOutputTokens: endless.max_tokens,
    providerOptions: { penstock: { ignore_eos: true } },
    abortSignal: abort.signal,
  });
  for await (const part of stream.fullStream) if (part.type === 'text-delta') abort.abort();
  await backstage('idle');
  assert.equal((await backstage('last-settled')).outcome, 'cancelled');
});

test('errors carry the status, the message and the headers', async () => {
  const ask = (more) => failure(generateText({ model, prompt, maxRetries: 0, ...more }));
  const unknown = await ask({ model: provider('gpt-9') });
  assert.equal(unknown.statusCode, 404);
  assert.match(unknown.message, /gpt-9/);
  const wrong = await ask({ topP: 7 });
  assert.equal(wrong.statusCode, 400);
  const long = await ask({ prompt: penstock.tooLong });
  assert.equal(long.statusCode, 400);
  assert.equal(long.data.error.code, 'context_length_exceeded');
  const loading = await ask({ model: provider(penstock.loading) });
  assert.equal(loading.statusCode, 503);
  assert.equal(loading.isRetryable, true);
  assert.ok(Number(loading.responseHeaders['retry-after']) >= 1);
});
