// A replica is killed while it streams to every Node client: none takes half an answer for a whole.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { streamText } from 'ai';
import OpenAI from 'openai';
import { backstage, endless, penstock, user } from './penstock.mjs';

const { model, story } = penstock;
const client = new OpenAI({ baseURL: penstock.baseURL, apiKey: 'none', maxRetries: 0 });
const provider = createOpenAICompatible({ name: 'penstock', baseURL: penstock.baseURL });

/** Reads until there is text; gives a function that reads the rest: what came, and what was thrown. */
async function started(stream, isText) {
  const iterator = stream[Symbol.asyncIterator]();
  while (!isText((await iterator.next()).value));
  return async () => {
    const parts = [];
    try {
      for (let next = await iterator.next(); !next.done; next = await iterator.next())
        parts.push(next.value);
    } catch (thrown) {
      return { parts, thrown };
    }
    return { parts, thrown: null };
  };
}

test('each is told in-band, in its own way', async () => {
  const chat = await started(
    await client.chat.completions.create({
      model,
      messages: user(story),
      stream: true,
      ...endless,
    }),
    (chunk) => chunk.choices[0]?.delta?.content,
  );
  const vercel = await started(
    streamText({
      model: provider(model),
      prompt: story,
      maxRetries: 0,
      maxOutputTokens: endless.max_tokens,
      providerOptions: { penstock: { ignore_eos: true } },
      onError: () => {},
    }).fullStream,
    (part) => part.type === 'text-delta',
  );
  await backstage('lose-replica');
  const lost = (await chat()).thrown;
  const { parts } = await vercel();
  await backstage('answers-again');
  assert.ok(lost instanceof OpenAI.APIError, lost);
  assert.ok(!(lost instanceof OpenAI.APIConnectionError), lost);
  assert.equal(lost.code, 'upstream_error');
  const told = parts.find((part) => part.type === 'error');
  assert.ok(told, `no error among ${[...new Set(parts.map((part) => part.type))]}`);
  assert.match(String(told.error.message ?? told.error), /again/);
});
