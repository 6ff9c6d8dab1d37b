"""The chat template: a request's messages and tools as the text that the model reads."""

from __future__ import annotations

from typing import Final

# A role that the model was not taught is heard as the nearest one: developer as system, function
# as tool and any other as user. Content may be a string, absent, or a list of OpenAI content parts.
# Shouting is heard as if it were said: a word in capitals shares no token with the same word in
# small ones. A tool is one line, `name(argument:type,optional?:one|other)`: a model this small
# learns that far better than JSON Schema. Whatever a schema has beside it is not said.
TEMPLATE: Final = (
    "{{- '<s>' -}}"
    "{%- if tools is iterable and tools -%}{{- '<|tools|>' -}}"
    "{%- for tool in tools if tool is mapping -%}"
    "{%- set function = tool['function'] if tool['function'] is mapping else tool -%}"
    "{%- set schema = function['parameters'] if function['parameters'] is mapping else {} -%}"
    "{%- set fields = schema['properties'] if schema['properties'] is mapping else {} -%}"
    "{%- set needed = schema['required'] if schema['required'] is iterable else [] -%}"
    "{{- '' if loop.first else '\n' -}}{{- function['name'] | string -}}{{- '(' -}}"
    "{%- for name in fields -%}"
    "{%- set field = fields[name] if fields[name] is mapping else {} -%}"
    "{{- '' if loop.first else ',' -}}{{- name | string -}}"
    "{{- ':' if name in needed else '?:' -}}"
    "{%- if field['enum'] and field['enum'] is iterable and field['enum'] is not string -%}"
    "{{- field['enum'] | join('|') -}}"
    "{%- elif field['type'] is string -%}{{- field['type'] -}}"
    "{%- elif field['type'] and field['type'] is iterable -%}{{- field['type'] | join('|') -}}"
    "{%- else -%}{{- 'any' -}}{%- endif -%}"
    "{%- endfor -%}"
    "{{- ')' -}}"
    "{%- endfor -%}"
    "{%- endif -%}"
    "{%- for message in messages -%}"
    "{%- if message['content'] is string -%}{%- set text = message['content'] | trim -%}"
    "{%- elif message['content'] is iterable -%}"
    "{%- set text = message['content'] | selectattr('type', 'equalto', 'text')"
    " | map(attribute='text') | join | trim -%}"
    "{%- else -%}{%- set text = '' -%}{%- endif -%}"
    "{%- if message['role'] == 'assistant' -%}{{- '<|assistant|>' + text -}}"
    "{%- if message['tool_calls'] is iterable -%}"
    "{%- for call in message['tool_calls'] if call is mapping -%}"
    "{%- set function = call['function'] if call['function'] is mapping else call -%}"
    "{%- set arguments = function['arguments'] -%}"
    "{{- '<tool_call>\n{\"name\": \"' -}}{{- function['name'] | string -}}"
    '{{- \'", "arguments": \' -}}'
    "{%- if arguments is string and arguments -%}{{- arguments -}}"
    "{%- elif arguments is mapping -%}{{- arguments | tojson -}}"
    "{%- else -%}{{- '{}' -}}{%- endif -%}"
    "{{- '}\n</tool_call>' -}}"
    "{%- endfor -%}"
    "{%- endif -%}{{- '<|end|>' -}}"
    "{%- elif message['role'] in ('tool', 'function') -%}{{- '<|tool|>' + text -}}"
    "{%- else -%}"
    "{%- if text == text | upper -%}{%- set text = text | lower -%}{%- endif -%}"
    "{%- if message['role'] in ('system', 'developer') -%}{{- '<|system|>' + text -}}"
    "{%- else -%}{{- '<|user|>' + text -}}{%- endif -%}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}"
)
