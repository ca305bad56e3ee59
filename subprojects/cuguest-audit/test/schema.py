# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""errors(instance, schema): how a JSON value differs from a schema, of what report.schema.json and sarif.schema.json
use of JSON Schema; by the package jsonschema where there is one."""

import re

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}


def has_type(value, name):
    return isinstance(value, TYPES[name]) and not (name == "integer" and isinstance(value, bool))


def own_errors(value, schema, root, where="$"):
    """Without jsonschema. Fails on a keyword that it does not know."""
    known = {"$schema", "$id", "$defs", "title", "description", "type", "const", "enum", "minimum", "maximum", "items",
             "properties", "required", "additionalProperties", "dependentRequired", "anyOf", "$ref", "definitions",
             "minItems", "maxItems", "uniqueItems", "minLength", "pattern"}
    assert set(schema) <= known, set(schema) - known
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        yield from own_errors(value, target, root, where)
    if "anyOf" in schema and all(list(own_errors(value, option, root, where)) for option in schema["anyOf"]):
        yield f"{where}: none of anyOf"
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(has_type(value, name) for name in names):
        yield f"{where}: {value!r} is not of {names}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{where}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is not in the enumeration"
    if "minimum" in schema and value < schema["minimum"] or "maximum" in schema and value > schema["maximum"]:
        yield f"{where}: {value} is out of range"
    if isinstance(value, str) and (len(value) < schema.get("minLength", 0)
                                   or not re.search(schema.get("pattern", ""), value)):
        yield f"{where}: {value!r} is too short, or not of the pattern"
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield f"{where}: has {len(value)} items"
        if schema.get("uniqueItems") and any(item in value[:i] for i, item in enumerate(value)):
            yield f"{where}: an item is there twice"
        for i, item in enumerate(value):
            yield from own_errors(item, schema.get("items", {}), root, f"{where}[{i}]")
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in value:
                yield f"{where}: has no {name}"
        for name, others in schema.get("dependentRequired", {}).items():
            if name in value and not set(others) <= set(value):
                yield f"{where}: {name} needs {others}"
        for name, item in value.items():
            if name in properties:
                yield from own_errors(item, properties[name], root, f"{where}.{name}")
            elif schema.get("additionalProperties") is False:
                yield f"{where}: {name} is not known"


def errors(value, schema):
    found = list(own_errors(value, schema, schema))
    try:
        import jsonschema
    except ImportError:
        return found
    validator = jsonschema.validators.validator_for(schema)(schema)
    return found + [error.message for error in validator.iter_errors(value)]


def trace_errors(events):
    """How a trace differs from the Trace Event format, of the phases that the auditor writes."""
    open_slices = {}
    threads = {}
    for number, event in sorted(enumerate(events), key=lambda pair: (pair[1].get("ts", -1), pair[0])):
        where = f"event {number}, {event}"
        if not {"ph", "pid", "tid", "name"} <= set(event) or not isinstance(event["name"], str):
            yield f"{where}: a member is missing"
            continue
        if event["ph"] not in "BEiCM":
            yield f"{where}: an unknown phase"
        if (event["ph"] == "M") == ("ts" in event) or not isinstance(event.get("ts", 0), (int, float)):
            yield f"{where}: has a wrong ts"
        if event["ph"] == "i" and event.get("s") not in ("t", "p", "g"):
            yield f"{where}: an instant needs a scope"
        if event["ph"] == "C" and not all(isinstance(value, (int, float)) for value in event["args"].values()):
            yield f"{where}: a counter needs numbers"
        if event["ph"] == "M" and event["name"] not in ("process_name", "thread_name"):
            yield f"{where}: unknown metadata"
        if event["ph"] in "BEi" and threads.setdefault(event["tid"], event["pid"]) != event["pid"]:
            yield f"{where}: a thread of two processes"
        stack = open_slices.setdefault(event["tid"], [])
        if event["ph"] == "B":
            stack.append(event["name"])
        elif event["ph"] == "E" and (not stack or stack.pop() != event["name"]):
            yield f"{where}: closes what is not open"
    for thread, stack in open_slices.items():
        if stack:
            yield f"thread {thread}: {stack} stays open"
