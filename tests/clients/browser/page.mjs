// What the page does with a gateway of another origin; the results go back to where it came from.
import OpenAI from 'openai';

const given = await (await fetch('/given', { method: 'POST' })).json();
const client = new OpenAI({
  baseURL: given.baseURL,
  apiKey: 'none',
  maxRetries: 0,
  dangerouslyAllowBrowser: true,
});
const messages = [{ role: 'user', content: given.weather }];
const tools = [given.tool];
const asked = { model: given.model, messages, tools, temperature: 0, max_tokens: 200 };
const backstage = async (deed) => (await fetch(`/${deed}`, { method: 'POST' })).json();

/** What an error looks like from inside of a page. */
const told = (error) => ({
  kind: error.constructor.name,
  status: error.status,
  code: error.code,
  retryAfter: error.headers?.get('retry-after'),
  requestID: error.requestID,
});

async function failure(more) {
  try {
    await client.chat.completions.create({ ...asked, tools: undefined, ...more });
  } catch (error) {
    return told(error);
  }
  return null;
}

const deeds = {
  async calls() {
    const stream = await client.chat.completions.create({
      ...asked,
      stream: true,
      tool_choice: 'required',
    });
    let name = '';
    let args = '';
    for await (const chunk of stream) {
      const call = chunk.choices[0]?.delta?.tool_calls?.[0];
      name += call?.function?.name ?? '';
      args += call?.function?.arguments ?? '';
    }
    return { name, args: JSON.parse(args) };
  },

  async loop() {
    const runner = client.chat.completions.runTools({
      ...asked,
      stream: true,
      tools: [{ ...given.tool, function: { ...given.tool.function, function: () => given.result } }],
    });
    return { text: await runner.finalContent() };
  },

  async stopsInCall() {
    const stream = await client.chat.completions.create({
      ...asked,
      stream: true,
      tools: [given.longTool],
      tool_choice: 'required',
      max_tokens: 1900,
    });
    let seen = 0;
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta?.tool_calls && ++seen === 5) stream.controller.abort();
    }
    await backstage('idle');
    return { seen, settled: await backstage('last-settled') };
  },

  async stops() {
    const stream = await client.chat.completions.create({
      ...asked,
      tool_choice: 'none',
      stream: true,
      max_tokens: 1900,
      ignore_eos: true,
    });
    let seen = 0;
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta?.content && ++seen === 5) stream.controller.abort();
    }
    await backstage('idle');
    return { seen, settled: await backstage('last-settled') };
  },

  async errors() {
    return {
      unknown: await failure({ model: 'gpt-9' }),
      wrong: await failure({ temperature: 'hot' }),
      long: await failure({ messages: [{ role: 'user', content: 'gateway '.repeat(20_000) }] }),
      loading: await failure({ model: given.loading }),
      nowhere: await client.images.generate({ prompt: 'a gateway' }).then(() => null, told),
    };
  },

  async lost() {
    const stream = await client.chat.completions.create({
      ...asked,
      tools: undefined,
      stream: true,
      max_tokens: 1900,
      ignore_eos: true,
    });
    let seen = 0;
    try {
      for await (const chunk of stream) {
        if (chunk.choices[0]?.delta?.content && ++seen === 1) await backstage('lose-replica');
      }
    } catch (error) {
      return told(error);
    } finally {
      await backstage('answers-again');
    }
    return null;
  },
};

const results = {};
for (const deed of new URLSearchParams(location.search).get('do').split(',')) {
  results[deed] = await deeds[deed]().catch((error) => ({ thrown: String(error.stack ?? error) }));
}
await fetch('/result', { method: 'POST', body: JSON.stringify(results) });
