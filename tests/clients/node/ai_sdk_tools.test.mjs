// Tools and objects through Vercel's AI SDK, with both of its providers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateObject, generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { penstock } from './penstock.mjs';

const { baseURL, model, person, question, weather, weatherOfTwo, weatherTold } = penstock;
const compatible = { name: 'penstock', baseURL, supportsStructuredOutputs: true };
const openai = createOpenAI({ baseURL, apiKey: 'none' });
const models = {
  'openai, Responses': openai(model),
  'openai, chat': openai.chat(model),
  'compatible, chat': createOpenAICompatible(compatible)(model),
};

/** The weather tool, and the cities that it was asked for. */
function weatherTools() {
  const cities = [];
  const get_weather = tool({
    description: 'The weather in a city.',
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => (cities.push(city), penstock.weatherResult),
  });
  return { cities, tools: { get_weather } };
}

for (const [name, model] of Object.entries(models)) {
  const asked = { model, prompt: weather, temperature: 0, maxOutputTokens: 200, maxRetries: 0 };

  test(`${name}: a demanded call runs the tool`, async () => {
    const { cities, tools } = weatherTools();
    const { toolCalls } = await generateText({
      ...asked,
      prompt: question,
      tools,
      toolChoice: 'required',
    });
    assert.ok(cities.length);
    assert.deepEqual(toolCalls.map((call) => call.input.city), cities);
  });

  test(`${name}: generateObject gives an object of the schema`, async () => {
    const schema = z.object({ name: z.string(), age: z.int() });
    const { object } = await generateObject({ ...asked, schema, prompt: person });
    assert.ok(schema.safeParse(object).success);
  });

  test(`${name}: generateText goes from the call to the words in two steps`, async () => {
    const { cities, tools } = weatherTools();
    const done = await generateText({ ...asked, tools, stopWhen: stepCountIs(3) });
    assert.deepEqual(cities, ['Paris']);
    assert.deepEqual(done.steps.map((step) => step.finishReason), ['tool-calls', 'stop']);
    assert.equal(done.text, weatherTold);
  });

  test(`${name}: streamText does, too, with parallel calls`, async () => {
    const { cities, tools } = weatherTools();
    const stream = streamText({
      ...asked,
      prompt: weatherOfTwo,
      tools,
      stopWhen: stepCountIs(3),
    });
    const kinds = new Set();
    for await (const part of stream.fullStream) kinds.add(part.type);
    for (const kind of ['tool-input-delta', 'tool-call', 'tool-result', 'text-delta'])
      assert.ok(kinds.has(kind), `no ${kind} among ${[...kinds]}`);
    assert.deepEqual(cities, ['Paris', 'Rome']);
    assert.match(await stream.text, /Paris.*21.*Rome.*21/);
    assert.equal(await stream.finishReason, 'stop');
  });
}
