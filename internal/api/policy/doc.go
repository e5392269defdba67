// Package policy reads, checks, compares and changes sandbox policies. It knows the generated messages and nothing else
// of the project, so that a gateway and a client judge a policy by the same rules.
//
// # The written form
//
// [Parse] reads the YAML (or JSON, which is YAML) that OpenShell's command line reads. What is known of it, from the
// "Policy Schema Reference" of OpenShell's documentation and from the schema as published in the 0.1 line
// (NVIDIA/OpenShell, docs/how-it-works/policies/schema.mdx at 0b37da61 and 2cda23f1):
//
//   - `version` is required and 1. Unknown keys, duplicate keys, merge keys (`<<`) and null in place of a section are
//     refused. A file holds one document of at most 4 MiB, 64 levels, 100,000 nodes and 100 uses of an alias.
//   - The section that the messages call filesystem is written `filesystem_policy`. Left out, the working directory is
//     writable; written, `include_workdir` defaults to false.
//   - `landlock.compatibility` defaults to best_effort. A rule's or a middleware's `name` defaults to its key.
//   - An endpoint takes `port` or `ports`; the messages carry both, `port` being the first of `ports`.
//   - `tls` knows skip; `enforcement` enforce and audit; `access` read-only, read-write and full. The two older values
//     of `tls`, terminate and passthrough, are refused.
//   - The body limit of MCP and JSON-RPC is one field in the messages; it is written `mcp.max_body_bytes` on an endpoint
//     of protocol mcp, else `json_rpc.max_body_bytes`.
//   - `mcp` may stand on endpoints of protocol mcp only. Its `versions` default to 2025-11-25 and are kept in order of
//     publication.
//   - A matcher is a pattern, or `{any: [patterns]}`. `params` may nest; the messages carry dotted keys. `tool` is
//     another spelling of `params.name`.
//   - What a gateway works out itself cannot be written: advisor_proposed, provider_credentialed, token_grant_owner.
//
// Our own choices, where the sources are silent or a value would be lost without a word: both of `port` and `ports` only
// if they agree; both of `tool` and `params.name`, or of the two body limits, only if they agree; numbers in plain
// decimal, since 0777 and 1_000 mean different things to different readers.
//
// # Meaning
//
// [Canonical] is the form a gateway stores, [Hash] its identity. [Equal] is wider: it resolves the documented defaults
// and takes every list as a set, since no rule depends on the order of another. [Compare] tells a change that a running
// sandbox can take from one that needs another sandbox.
package policy
