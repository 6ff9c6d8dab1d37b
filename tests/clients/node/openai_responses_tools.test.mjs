// Function tools in Responses through the openai SDK for Node.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { citySchema, failure, penstock } from './penstock.mjs';

const { model, question, weather, weatherOfTwo, weatherTold } = penstock;
const client = new OpenAI({ baseURL: penstock.baseURL, apiKey: 'none', maxRetries: 0 });
const tools = [{ type: 'function', name: 'get_weather', strict: true, parameters: citySchema }];
const asked = { model, input: weather, tools, temperature: 0 };
const callsOf = (response) => response.output.filter((item) => item.type === 'function_call');
const argumentsOf = (response) => callsOf(response).map((item) => JSON.parse(item.arguments));

test('a demanded call is the same streamed and whole', async () => {
  for (const choice of ['required', { type: 'function', name: 'get_weather' }]) {
    const demanded = { ...asked, input: question, tool_choice: choice };
    const whole = await client.responses.create(demanded);
    const streamed = await client.responses.stream(demanded).finalResponse();
    assert.deepEqual(argumentsOf(streamed), argumentsOf(whole));
    assert.ok(callsOf(whole).length);
    for (const each of argumentsOf(whole)) assert.equal(typeof each.city, 'string');
  }
});

test('a tool that is not there cannot be demanded', async () => {
  const nobody = { type: 'function', name: 'nobody' };
  const wrong = await failure(client.responses.create({ ...asked, tool_choice: nobody }));
  assert.ok(wrong instanceof OpenAI.BadRequestError, wrong);
});

test('parallel calls are items of their own', async () => {
  const response = await client.responses.create({ ...asked, input: weatherOfTwo });
  assert.deepEqual(argumentsOf(response), [{ city: 'Paris' }, { city: 'Rome' }]);
});

test('the loop ends in words that hold the result', async () => {
  const first = await client.responses.stream(asked).finalResponse();
  const [call] = callsOf(first);
  const output = JSON.stringify(penstock.weatherResult);
  const result = { type: 'function_call_output', call_id: call.call_id, output };
  const input = [{ role: 'user', content: weather }, ...first.output, result];
  const told = await client.responses.create({ ...asked, input });
  assert.equal(told.output_text, weatherTold);
});
