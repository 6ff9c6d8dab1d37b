// A replica is killed while it streams to every Node client: none sees more than a pause, and where
// answers do not go on none takes half an answer for a whole.
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
  const parts = [];
  do parts.push((await iterator.next()).value);
  while (!isText(parts.at(-1)));
  return async () => {
    try {
      for (let next = await iterator.next(); !next.done; next = await iterator.next())
        parts.push(next.value);
    } catch (thrown) {
      return { parts, thrown };
    }
    return { parts, thrown: null };
  };
}

/** The whole text of a story, by each client; once both have begun, `lose` is awaited. */
async function told(lose) {
  const chat = await started(
    await client.chat.completions.create({
      model,
      messages: user(story),
      stream: true,
      temperature: 0,
      max_tokens: 500,
      ignore_eos: true,
    }),
    (chunk) => chunk.choices[0]?.delta?.content,
  );
  const vercel = await started(
    streamText({
      model: provider(model),
      prompt: story,
      maxRetries: 0,
      temperature: 0,
      maxOutputTokens: 500,
      providerOptions: { penstock: { ignore_eos: true } },
    }).fullStream,
    (part) => part.type === 'text-delta',
  );
  await lose();
  const [first, second] = [await chat(), await vercel()];
  assert.equal(first.thrown ?? second.thrown, null);
  assert.equal(new Set(first.parts.map((chunk) => chunk.id)).size, 1);
  const ends = first.parts.map((chunk) => chunk.choices[0]?.finish_reason).filter(Boolean);
  assert.deepEqual(ends, ['length']);
  const said = second.parts.filter((part) => part.type === 'text-delta').map((part) => part.text);
  assert.equal(second.parts.find((part) => part.type === 'error'), undefined);
  return [first.parts.map((chunk) => chunk.choices[0]?.delta?.content ?? '').join(''), said.join('')];
}

test('each reads over a kill what it would have read', async () => {
  const undisturbed = await told(async () => {});
  await backstage('wait-for-the-next');
  assert.deepEqual(await told(() => backstage('lose-replica')), undisturbed);
  await backstage('wait-as-ever');
});

test('each is told in-band, in its own way', async () => {
  await backstage('tell-losses');
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
  await backstage('go-on');
  assert.ok(lost instanceof OpenAI.APIError, lost);
  assert.ok(!(lost instanceof OpenAI.APIConnectionError), lost);
  assert.equal(lost.code, 'upstream_error');
  const told = parts.find((part) => part.type === 'error');
  assert.ok(told, `no error among ${[...new Set(parts.map((part) => part.type))]}`);
  assert.match(String(told.error.message ?? told.error), /again/);
});
