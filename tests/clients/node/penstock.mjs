// What every script here knows: the system under test, and what its test may do to it.
import assert from 'node:assert/strict';

export const penstock = {
  ...JSON.parse(process.env.PENSTOCK),
  tooLong: 'gateway '.repeat(20_000),
};

/** Has the test that started this script do something: see test_node.py. */
export async function backstage(deed) {
  const reply = await fetch(`${penstock.backstage}/${deed}`, { method: 'POST' });
  assert.equal(reply.status, 200, `backstage cannot do ${deed}`);
  return reply.json();
}

export const user = (content) => [{ role: 'user', content }];

/** An answer of the model that does not end before its limit. */
export const endless = { max_tokens: 1900, ignore_eos: true };

/** The tool as chat completions want it. */
export const weatherTool = penstock.weatherTool;
export const citySchema = weatherTool.function.parameters;

/** The value that a promise fails with; fails itself when it does not. */
export async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  assert.fail('nothing was thrown');
}
