package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

type attributes = map[string]schema.Attribute

func (d *policyDocumentDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Writes a sandbox policy from rules with types, checks it, and returns its text for the argument `policy` of `openshell_sandbox`. Arguments are named and nested as in a policy file (YAML), so a file can be carried over by hand. Nothing is asked of a gateway.",
		Attributes: attributes{
			policyText: schema.StringAttribute{Computed: true, MarkdownDescription: "The policy as JSON: the same rules always give the same text."},
			"filesystem_policy": nestedArgument("Files that the sandbox may touch; all others are out of reach, save the system paths that the gateway adds itself. Fixed once the sandbox has started, save that paths may be added. Default: only the working directory, writable.", attributes{
				"include_workdir": flagArgument("Whether the working directory is writable without being listed. Default: `false`, once this block is there."),
				"read_only":       textsArgument("Absolute paths that may be read. At most 256 together with `read_write`."),
				"read_write":      textsArgument("Absolute paths that may be read and written. `/` is not allowed."),
			}),
			"landlock": nestedArgument("How the kernel enforces the filesystem rules (Landlock, of Linux). Fixed once the sandbox has started.", attributes{
				"compatibility": textArgument("What happens where the rules cannot be enforced: with `best_effort` the sandbox runs without them and logs it, with `hard_requirement` it does not start. Default: `best_effort`."),
			}),
			"process": nestedArgument("Whom the main process runs as. Fixed once the sandbox has started.", attributes{
				"run_as_user":  textArgument("User: `sandbox`, or a number from 1 to 4294967294. Default: left to the gateway's compute driver."),
				"run_as_group": textArgument("Group: `sandbox`, or a number from 1 to 4294967294. Default: left to the gateway's compute driver."),
			}),
			"network_policies": nestedMap("Rules for the network, by a name of your choice. Each lets every program it lists reach every endpoint it lists; what no rule allows is refused. They may change while the sandbox runs. Names that begin with `_provider_` belong to the gateway.", attributes{
				"name": textArgument("Name to show. Default: the rule's name in the map."),
				"binaries": nestedList("Programs that the rule is for. List at least one: without any, the rule is for none.", attributes{
					"path": schema.StringAttribute{Required: true, MarkdownDescription: "Real path of the program, or a pattern such as `/usr/lib/jvm/*/bin/java`. A script runs as its interpreter. What the program starts counts too."},
				}),
				"endpoints": nestedList("Destinations that the programs may reach.", endpointAttributes()),
			}),
			"network_middlewares": nestedMap("Services that look at requests which the rules allow, and may change or refuse them, by a name of your choice: at most 10. They may change while the sandbox runs.", attributes{
				"name":        textArgument("Name to show. Default: the name in the map."),
				"middleware":  schema.StringAttribute{Required: true, MarkdownDescription: "A built-in middleware, or a service that is registered with the gateway."},
				"order":       numberArgument("Place in the row, lowest first. No two middlewares may have the same. Default: 0."),
				"on_error":    textArgument("What becomes of requests when the middleware fails: `fail_closed` refuses them, `fail_open` lets them through. Default: `fail_closed`."),
				jsonAttribute: textArgument("Settings of the middleware, as the text of a JSON object; `jsonencode` makes one."),
				"endpoints": schema.SingleNestedAttribute{
					Required: true, MarkdownDescription: "Hosts that it is for: at most 32 patterns in all, in which `*` stands for one label and `**` for one or more.",
					Attributes: attributes{
						"include": schema.ListAttribute{Required: true, ElementType: types.StringType, MarkdownDescription: "Patterns of hosts, at least one."},
						"exclude": textsArgument("Patterns of hosts that it is not for, even where `include` matches."),
					},
				},
			}),
		},
	}
}

// endpointAttributes describe one destination.
func endpointAttributes() attributes {
	return attributes{
		"host":        textArgument("Host name, address or pattern. `*.example.com` stands for one more label, `**.example.com` for one or more; a pattern has three labels or more. Needed unless `allowed_ips` is given."),
		"port":        numberArgument("Port, from 1 to 65535. Give this or `ports`."),
		"ports":       schema.ListAttribute{Optional: true, ElementType: types.Int64Type, MarkdownDescription: "Ports, where there are several."},
		"path":        textArgument("Pattern of the request paths that this endpoint is for, to tell several endpoints of one host and port apart: `/v1/**` stands for `/v1` and all below. Default: every path."),
		"allowed_ips": textsArgument("Addresses and ranges, such as `10.0.0.0/8`, that the host must resolve to. A pattern reaches private addresses only with this."),
		"protocol":    textArgument("What is spoken there, so that requests can be inspected: `rest`, `websocket`, `graphql`, `sql`, `json-rpc` or `mcp`, which need `access` or `rules`. `tcp` is a connection that is not inspected. Default: not inspected."),
		"tls":         textArgument("`skip` lets TLS through unopened, so that nothing inside is inspected. Default: opened where that is needed."),
		"enforcement": textArgument("`enforce` refuses requests that `access`, `rules` and `deny_rules` do not let through; `audit` lets them through and logs them. Default: `audit`."),
		"access":      textArgument("Ready-made rules in place of `rules`: `read-only`, `read-write` or `full`. Not for `json-rpc` and `mcp`."),
		"rules": nestedList("Kinds of requests that are allowed.", attributes{
			"allow": schema.SingleNestedAttribute{
				Required: true, MarkdownDescription: "What the request must be like. Which of these count depends on `protocol`; all that are given must hold.", Attributes: requestAttributes(),
			},
		}),
		"deny_rules": nestedList("Kinds of requests that are not allowed, whatever `access` and `rules` say.", requestAttributes()),

		"allow_encoded_slash":             flagArgument("Whether request paths may hold an encoded slash (`%2F`), as those of scoped npm packages do. Default: `false`."),
		"websocket_credential_rewrite":    flagArgument("Whether placeholders of credentials are replaced in the client's WebSocket messages. Default: `false`."),
		"request_body_credential_rewrite": flagArgument("Whether placeholders of credentials are replaced in request bodies. Default: `false`."),
		"allow_uninspected_credentials":   flagArgument("Whether an endpoint that gets credentials may do without inspection. Default: `false`."),
		"credential_binding": nestedArgument("Binds the static credentials of a provider to this endpoint. Needs `host`.", attributes{
			"provider": schema.StringAttribute{Required: true, MarkdownDescription: "Name of the provider, which must be attached to the sandbox."},
		}),
		"credential_signing": textArgument("How requests to AWS are signed: `sigv4`, `sigv4:body` (with the body) or `sigv4:no_body`. Needs `signing_service`. Default: not signed."),
		"signing_service":    textArgument("AWS service that requests are signed for, such as `bedrock`."),
		"signing_region":     textArgument("AWS region that requests are signed for. Default: taken from the host."),

		"persisted_queries": textArgument("GraphQL queries that are sent as a hash only: `deny`, or `allow_registered` for those in `graphql_persisted_queries`. Default: `deny`."),
		"graphql_persisted_queries": nestedMap("GraphQL queries that may be sent as a hash only, by their hash or id.", attributes{
			"operation_type": schema.StringAttribute{Required: true, MarkdownDescription: "`query`, `mutation` or `subscription`."},
			"operation_name": textArgument("Name of the operation."),
			"fields":         textsArgument("Top-level fields that it selects."),
		}),
		"graphql_max_body_bytes": numberArgument("Largest GraphQL request that is inspected, in bytes. Default: 65536."),
		"json_rpc": nestedArgument("Settings for protocol `json-rpc`.", attributes{
			"max_body_bytes": numberArgument("Largest request that is inspected, in bytes. Default: 65536."),
		}),
		"mcp": nestedArgument("Settings for protocol `mcp` (Model Context Protocol).", attributes{
			"versions":                    textsArgument("Revisions of the protocol that are allowed: `2025-03-26`, `2025-06-18`, `2025-11-25` or `2026-07-28`. Default: `2025-11-25`."),
			"max_body_bytes":              numberArgument("Largest request that is inspected, in bytes. Default: 65536."),
			"strict_tool_names":           flagArgument("Whether names of tools must be 1 to 128 letters, digits, `_`, `.` and `-`. Default: `true`."),
			"allow_all_known_mcp_methods": flagArgument("Whether all methods that the protocol itself defines are allowed. Rules that name a tool still limit which are called. Default: `false`."),
		}),
	}
}

// requestAttributes describe a kind of request.
func requestAttributes() attributes {
	patterns := types.ListType{ElemType: types.StringType}
	return attributes{
		"method":         textArgument("Method: of HTTP (`GET`, or `*` for all), JSON-RPC (a name, or `*`), MCP (`tools/call`), or, for WebSocket, `GET` for the upgrade and `WEBSOCKET_TEXT` for messages."),
		"path":           textArgument("`rest`, `websocket`: pattern of the path, such as `/repos/*/issues` or, for all below, `/repos/**`."),
		"command":        textArgument("`sql`: command, such as `SELECT`."),
		"query":          schema.MapAttribute{Optional: true, ElementType: patterns, MarkdownDescription: "`rest`, `websocket`: parameters of the query (`?a=b`), each with patterns of which one must match. In a pattern `*` stops at a dot, `**` does not."},
		"params":         schema.MapAttribute{Optional: true, ElementType: patterns, MarkdownDescription: "`mcp`: parameters of the call, by name with dots between levels, each with patterns of which one must match. The gateway takes only `name`, for which `tool` is the better word."},
		"tool":           textsArgument("`mcp`: patterns of the tool's name, of which one must match, with the method `tools/call`."),
		"operation_type": textArgument("`graphql`: `query`, `mutation` or `subscription`. Needed there."),
		"operation_name": textArgument("`graphql`: pattern of the operation's name."),
		"fields":         textsArgument("`graphql`: patterns of top-level fields. In `rules` every field of the request must match one, in `deny_rules` one field is enough."),
	}
}

func textArgument(description string) schema.Attribute {
	return schema.StringAttribute{Optional: true, MarkdownDescription: description}
}

func flagArgument(description string) schema.Attribute {
	return schema.BoolAttribute{Optional: true, MarkdownDescription: description}
}

func numberArgument(description string) schema.Attribute {
	return schema.Int64Attribute{Optional: true, MarkdownDescription: description}
}

func textsArgument(description string) schema.Attribute {
	return schema.ListAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: description}
}

func nestedArgument(description string, inside attributes) schema.Attribute {
	return schema.SingleNestedAttribute{Optional: true, MarkdownDescription: description, Attributes: inside}
}

func nestedList(description string, inside attributes) schema.Attribute {
	return schema.ListNestedAttribute{Optional: true, MarkdownDescription: description, NestedObject: schema.NestedAttributeObject{Attributes: inside}}
}

func nestedMap(description string, inside attributes) schema.Attribute {
	return schema.MapNestedAttribute{Optional: true, MarkdownDescription: description, NestedObject: schema.NestedAttributeObject{Attributes: inside}}
}
