// Embeddings through the openai SDK for Node, which asks for base64 unless it is told otherwise.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { penstock } from './penstock.mjs';

const client = new OpenAI({ baseURL: penstock.baseURL, apiKey: 'none', maxRetries: 0 });
const input = ['The cat sleeps.', 'A gateway passes requests on.'];

test('every sentence gets a vector whichever way it travels', async () => {
  const asked = { model: penstock.embedder, input };
  const byDefault = await client.embeddings.create(asked);
  const floats = await client.embeddings.create({ ...asked, encoding_format: 'float' });
  assert.deepEqual(byDefault.data.map((each) => each.index), [0, 1]);
  byDefault.data.forEach((each, i) =>
    each.embedding.forEach((x, j) => assert.ok(Math.abs(x - floats.data[i].embedding[j]) < 1e-6)),
  );
});
