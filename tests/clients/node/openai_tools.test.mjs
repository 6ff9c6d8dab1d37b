// Tools through the openai SDK for Node: chat completions, runTools, Responses.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { zodFunction } from 'openai/helpers/zod';
import { z } from 'zod';
import { backstage, endless, failure, penstock, user, weatherTool } from './penstock.mjs';

const { model, question, weather, weatherOfTwo, weatherTold } = penstock;
const client = new OpenAI({ baseURL: penstock.baseURL, apiKey: 'none', maxRetries: 0 });
const weatherResult = JSON.stringify(penstock.weatherResult);
const asked = { model, messages: user(weather), tools: [weatherTool], temperature: 0, max_tokens: 200 };
const argumentsOf = (message) => message.tool_calls.map((call) => JSON.parse(call.function.arguments));

test('a demanded call is the same streamed and whole', async () => {
  for (const choice of ['required', { type: 'function', function: { name: 'get_weather' } }]) {
    const demanded = { ...asked, messages: user(question), tool_choice: choice };
    const whole = await client.chat.completions.create(demanded);
    const streamed = await client.chat.completions.stream(demanded).finalChatCompletion();
    const calls = argumentsOf(whole.choices[0].message);
    assert.deepEqual(argumentsOf(streamed.choices[0].message), calls);
    assert.equal(streamed.choices[0].finish_reason, whole.choices[0].finish_reason);
    for (const each of calls) assert.equal(typeof each.city, 'string');
  }
});

test('parse gives the arguments in the asked shape', async () => {
  const parameters = z.object({ city: z.string() });
  const reply = await client.chat.completions.parse({
    ...asked,
    tools: [zodFunction({ name: 'get_weather', parameters })],
    tool_choice: 'required',
  });
  const [call] = reply.choices[0].message.tool_calls;
  assert.ok(parameters.safeParse(call.function.parsed_arguments).success);
});

test('a stream with tools that is stopped leaves the engine idle', async () => {
  const stream = await client.chat.completions.create({
    ...asked,
    ...endless,
    tool_choice: 'none',
    stream: true,
  });
  for await (const chunk of stream) if (chunk.choices[0]?.delta?.content) break;
  await backstage('idle');
  assert.equal((await backstage('last-settled')).outcome, 'cancelled');
});

test('a tool that is not there cannot be demanded', async () => {
  const nobody = { type: 'function', function: { name: 'nobody' } };
  const wrong = await failure(client.chat.completions.create({ ...asked, tool_choice: nobody }));
  assert.ok(wrong instanceof OpenAI.BadRequestError, wrong);
});

test('streamed parts of parallel calls join to whole ones', async () => {
  const stream = client.chat.completions.stream({ ...asked, messages: user(weatherOfTwo) });
  const done = [];
  stream.on('tool_calls.function.arguments.done', (call) => done.push(JSON.parse(call.arguments)));
  const [choice] = (await stream.finalChatCompletion()).choices;
  assert.deepEqual(done, [{ city: 'Paris' }, { city: 'Rome' }]);
  assert.deepEqual(argumentsOf(choice.message), done);
  assert.equal(new Set(choice.message.tool_calls.map((call) => call.id)).size, 2);
  assert.equal(choice.finish_reason, 'tool_calls');
});

test('runTools calls the function and tells its result, streamed and whole', async () => {
  for (const stream of [false, true]) {
    const cities = [];
    const run = ({ city }) => (cities.push(city), weatherResult);
    const own = { ...weatherTool.function, function: run, parse: JSON.parse };
    const runner = client.chat.completions.runTools({
      ...asked,
      stream,
      tools: [{ type: 'function', function: own }],
    });
    assert.equal(await runner.finalContent(), weatherTold);
    assert.deepEqual(cities, ['Paris']);
  }
});
