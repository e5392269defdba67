#!/usr/bin/env python3
"""Writes upstream_facts.json: names and numbers of the OpenShell API as the official Python package carries them.

Usage: pip install protobuf grpcio "openshell==0.1.5" && python3 extract_facts.py > upstream_facts.json

The contract test compares the project's own protos with the result, so the test needs neither Python nor network.
"""

import importlib.metadata
import json
import sys

from google.protobuf import descriptor_pb2
from openshell._proto import datamodel_pb2, openshell_pb2, options_pb2, sandbox_pb2

FIELD = descriptor_pb2.FieldDescriptorProto
TYPES = {v: k.removeprefix("TYPE_").lower() for k, v in FIELD.Type.items()}


def cardinality(field):
    if field.label == FIELD.LABEL_REPEATED:
        return "repeated"
    return "optional" if field.proto3_optional else "singular"


def field_facts(field, maps):
    type_name = field.type_name.lstrip(".")
    facts = {"name": field.name, "number": field.number}
    if type_name in maps:
        key, value = maps[type_name]
        facts |= {"type": f"map<{key},{value}>", "cardinality": "map"}
    else:
        facts |= {"type": type_name or TYPES[field.type], "cardinality": cardinality(field)}
    return facts


def add_message(message, prefix, facts):
    full_name = f"{prefix}.{message.name}"
    maps = {}
    for nested in message.nested_type:
        if nested.options.map_entry:
            key, value = nested.field
            maps[f"{full_name}.{nested.name}"] = (TYPES[key.type], value.type_name.lstrip(".") or TYPES[value.type])
        else:
            add_message(nested, full_name, facts)
    for enum in message.enum_type:
        add_enum(enum, full_name, facts)
    oneofs = [o.name for o in message.oneof_decl]
    fields = []
    for field in message.field:
        one = field_facts(field, maps)
        if field.HasField("oneof_index") and not field.proto3_optional:
            one["oneof"] = oneofs[field.oneof_index]
        fields.append(one)
    facts["messages"][full_name] = {
        "fields": sorted(fields, key=lambda f: f["number"]),
        "reserved": sorted(n for r in message.reserved_range for n in range(r.start, r.end)),
    }


def add_enum(enum, prefix, facts):
    facts["enums"][f"{prefix}.{enum.name}"] = {v.name: v.number for v in enum.value}


def main():
    facts = {"package": "openshell", "version": importlib.metadata.version("openshell")}
    facts |= {"messages": {}, "enums": {}, "methods": {}}
    for module in (datamodel_pb2, options_pb2, sandbox_pb2, openshell_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        for message in file.message_type:
            add_message(message, file.package, facts)
        for enum in file.enum_type:
            add_enum(enum, file.package, facts)
        for service in file.service:
            for method in service.method:
                rule = method.options.Extensions[options_pb2.authorization]
                facts["methods"][f"/{file.package}.{service.name}/{method.name}"] = {
                    "request": method.input_type.lstrip("."),
                    "response": method.output_type.lstrip("."),
                    "client_streaming": method.client_streaming,
                    "server_streaming": method.server_streaming,
                    "auth_mode": rule.auth_mode,
                    "scope": rule.scope,
                    "workspace_role": rule.workspace_role,
                    "global_role": rule.global_role,
                }
    json.dump(facts, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
