package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// providerModel is the provider's configuration.
type providerModel struct {
	Endpoint                 types.String `tfsdk:"endpoint"`
	Gateway                  types.String `tfsdk:"gateway"`
	UseActiveGateway         types.Bool   `tfsdk:"use_active_gateway"`
	Workspace                types.String `tfsdk:"workspace"`
	Token                    types.String `tfsdk:"token"`
	TokenFile                types.String `tfsdk:"token_file"`
	OIDC                     types.Object `tfsdk:"oidc"`
	Headers                  types.Map    `tfsdk:"headers"`
	TLS                      types.Object `tfsdk:"tls"`
	RequestTimeout           types.String `tfsdk:"request_timeout"`
	AllowUnconditionalDelete types.Bool   `tfsdk:"allow_unconditional_delete"`
	OnIdentityMismatch       types.String `tfsdk:"on_identity_mismatch"`
}

// oidcModel is the oidc attribute.
type oidcModel struct {
	Issuer       types.String `tfsdk:"issuer"`
	ClientID     types.String `tfsdk:"client_id"`
	ClientSecret types.String `tfsdk:"client_secret"`
	Audience     types.String `tfsdk:"audience"`
	Scopes       types.List   `tfsdk:"scopes"`
}

// tlsModel is the tls attribute.
type tlsModel struct {
	CACertFile         types.String `tfsdk:"ca_cert_file"`
	CACertPEM          types.String `tfsdk:"ca_cert_pem"`
	ClientCertFile     types.String `tfsdk:"client_cert_file"`
	ClientCertPEM      types.String `tfsdk:"client_cert_pem"`
	ClientKeyFile      types.String `tfsdk:"client_key_file"`
	ClientKeyPEM       types.String `tfsdk:"client_key_pem"`
	InsecureSkipVerify types.Bool   `tfsdk:"insecure_skip_verify"`
	ServerName         types.String `tfsdk:"server_name"`
}

// Values of on_identity_mismatch.
const (
	mismatchWarn  = "warn"
	mismatchError = "error"
)

func (p *openshellProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	notEmpty := []validator.String{notEmpty{}}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Manages sandboxes of an [OpenShell](https://github.com/NVIDIA/OpenShell) gateway. Every change of an existing sandbox is bound to the id in the state, so that destroy removes exactly the sandbox Terraform made.",
		Attributes: map[string]schema.Attribute{
			"endpoint": schema.StringAttribute{
				Optional: true, Validators: notEmpty,
				MarkdownDescription: "URL of the gateway, such as `https://gateway.example.com:17670`. `https://` is TLS, `http://` is plaintext. May also be set by the environment variable `OPENSHELL_GATEWAY_ENDPOINT`. One of `endpoint`, `gateway` and `use_active_gateway` is needed.",
			},
			"gateway": schema.StringAttribute{
				Optional: true, Validators: notEmpty,
				MarkdownDescription: "Name of a gateway that is registered in the `openshell` command line of this machine (`openshell gateway add`). Its endpoint, certificates and login are read from there, and never written: when a login expires, `openshell gateway login` renews it. Arguments that are set here win. May also be set by the environment variable `OPENSHELL_GATEWAY`. Conflicts with `endpoint`.",
			},
			"use_active_gateway": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Use the gateway that is selected in the `openshell` command line of this machine (`openshell gateway select`), unless one of the variables of `endpoint` and `gateway` is set. The selection can change between a plan and its apply; `gateway` does not. Conflicts with `endpoint` and `gateway`. Default: `false`.",
			},
			"workspace": schema.StringAttribute{
				Optional: true, Validators: []validator.String{objectName{}},
				MarkdownDescription: "Workspace of the resources and data sources that name none. May also be set by the environment variable `OPENSHELL_WORKSPACE`. Default: `default`. Changing it does not move existing sandboxes: they stay in the workspace they were created in.",
			},
			"token": schema.StringAttribute{
				Optional: true, Sensitive: true, Validators: notEmpty,
				MarkdownDescription: "Bearer token sent with every call. May also be set by the environment variable `OPENSHELL_TOKEN`. Over `http://`, credentials of any kind are sent to this machine itself only. Conflicts with `token_file` and `oidc`. Default: for a registered gateway with OIDC the login of the `openshell` command line, else no token is sent.",
			},
			"token_file": schema.StringAttribute{
				Optional: true, Validators: notEmpty,
				MarkdownDescription: "Path of a file with a bearer token in it. It is read for every call, so something else may renew the token during an apply. May also be set by the environment variable `OPENSHELL_TOKEN_FILE`. Conflicts with `token` and `oidc`.",
			},
			"oidc": oidcAttribute(),
			"headers": schema.MapAttribute{
				Optional: true, Sensitive: true, ElementType: types.StringType,
				MarkdownDescription: "Headers (gRPC metadata) sent with every call, for a proxy in front of the gateway.",
			},
			"tls": tlsAttribute(),
			"request_timeout": schema.StringAttribute{
				Optional: true, Validators: []validator.String{positiveDuration{}},
				MarkdownDescription: "How long one attempt of a call may take, as a duration such as `30s` or `1m30s`. Reads are repeated after passing trouble, and the `timeouts` of a resource bound everything together. Creating and stopping a sandbox wait for the gateway's compute, so only those `timeouts` bound them. Default: `30s`.",
			},
			"allow_unconditional_delete": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "What destroy does in front of a gateway that does not offer deletes bound to a sandbox's id (`openshell.conditional.v1`). `false` (default): it fails, deletes nothing and keeps the state. `true`: it reads the sandbox, compares the id and then deletes **by name**. A sandbox that somebody else puts under that name in between **is deleted instead**; destroy reports that if the gateway answers, and cannot prevent it. Gateways that offer the bound delete are not affected.",
			},
			"on_identity_mismatch": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf(mismatchWarn, mismatchError)},
				MarkdownDescription: "What refresh and destroy do when the name of a sandbox in the state belongs to another sandbox by now. `\"warn\"` (default): a refresh removes ours from the state, a destroy succeeds, both with a warning that names both ids, which a plain `terraform destroy` does not show when its own refresh has found out. `\"error\"`: both fail and keep the state, a destroy also when an attempt of its own that was not answered may have deleted ours. The other sandbox is left alone either way.",
			},
		},
	}
}

// optionalText is an argument that is not empty if it is set.
func optionalText(sensitive bool, description string) schema.Attribute {
	return schema.StringAttribute{Optional: true, Sensitive: sensitive, Validators: []validator.String{notEmpty{}}, MarkdownDescription: description}
}

func oidcAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "Tokens from an OpenID Connect issuer for a program (client credentials). They are kept in memory, and renewed before they end or when the gateway refuses one. For a registered gateway with OIDC, what is not set here is taken from the registration, except the secret. Conflicts with `token` and `token_file`.",
		Attributes: map[string]schema.Attribute{
			"issuer":        optionalText(false, "URL of the issuer, exactly as it calls itself in its discovery document."),
			"client_id":     optionalText(false, "Id of the program at the issuer."),
			"client_secret": optionalText(true, "Secret of the program. May also be set by the environment variable `OPENSHELL_OIDC_CLIENT_SECRET`."),
			"audience":      optionalText(false, "Audience to ask for, at issuers that want to be told (form field `audience`)."),
			"scopes": schema.ListAttribute{
				Optional: true, ElementType: types.StringType, Validators: []validator.List{listvalidator.ValueStringsAre(notEmpty{})},
				MarkdownDescription: "Scopes to ask for. Default: those that the issuer gives unasked.",
			},
		},
	}
}

func tlsAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "TLS towards an `https://` endpoint. Of each `_file` and `_pem` pair at most one can be set.",
		Attributes: map[string]schema.Attribute{
			"ca_cert_file":     optionalText(false, "Path of a PEM file with the authorities that may have signed the gateway's certificate. Default: those of the system."),
			"ca_cert_pem":      optionalText(false, "What `ca_cert_file` would hold, as text."),
			"client_cert_file": optionalText(false, "Path of a PEM file with the certificate (chain) that this side shows. Needs a key."),
			"client_cert_pem":  optionalText(false, "What `client_cert_file` would hold, as text."),
			"client_key_file":  optionalText(false, "Path of a PEM file with the unencrypted key of the client certificate."),
			"client_key_pem":   optionalText(true, "What `client_key_file` would hold, as text."),
			"insecure_skip_verify": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Accept any certificate of the gateway: whoever can redirect the connection can then read and change everything. The client certificate is shown all the same. May also be set by the environment variable `OPENSHELL_GATEWAY_INSECURE`. Default: `false`.",
			},
			"server_name": optionalText(false, "Name to verify in the gateway's certificate. Default: the host of `endpoint`."),
		},
	}
}
