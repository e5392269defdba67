package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// providerModel is the provider's configuration.
type providerModel struct {
	Endpoint                 types.String `tfsdk:"endpoint"`
	Workspace                types.String `tfsdk:"workspace"`
	Token                    types.String `tfsdk:"token"`
	TLS                      types.Object `tfsdk:"tls"`
	RequestTimeout           types.String `tfsdk:"request_timeout"`
	AllowUnconditionalDelete types.Bool   `tfsdk:"allow_unconditional_delete"`
	OnIdentityMismatch       types.String `tfsdk:"on_identity_mismatch"`
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
				MarkdownDescription: "URL of the gateway, such as `https://gateway.example.com:17670`. `https://` is TLS, `http://` is plaintext. May also be set by the environment variable `OPENSHELL_GATEWAY_ENDPOINT`; one of the two is needed.",
			},
			"workspace": schema.StringAttribute{
				Optional: true, Validators: []validator.String{objectName{}},
				MarkdownDescription: "Workspace of the resources and data sources that name none. May also be set by the environment variable `OPENSHELL_WORKSPACE`. Default: `default`. Changing it does not move existing sandboxes: they stay in the workspace they were created in.",
			},
			"token": schema.StringAttribute{
				Optional: true, Sensitive: true, Validators: notEmpty,
				MarkdownDescription: "Bearer token sent with every call. May also be set by the environment variable `OPENSHELL_TOKEN`. Over `http://` a token is sent to this machine itself only. Default: no token is sent.",
			},
			"tls": tlsAttribute(),
			"request_timeout": schema.StringAttribute{
				Optional: true, Validators: []validator.String{positiveDuration{}},
				MarkdownDescription: "How long one attempt of a call may take, as a duration such as `30s` or `1m30s`. Reads are repeated after passing trouble, and the `timeouts` of a resource bound everything together. Creating and stopping a sandbox wait for the gateway's compute, so only those `timeouts` bound them. Default: `30s`.",
			},
			"allow_unconditional_delete": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "What destroy does in front of a gateway that does not offer deletes bound to a sandbox's id (`openshell.conditional.v1`). `false` (default): it fails, deletes nothing and keeps the state. `true`: it reads the sandbox, compares the id and then deletes **by name**. A sandbox that somebody else puts under that name in between **is deleted instead**; destroy reports that, but cannot prevent it. Gateways that offer the bound delete are not affected.",
			},
			"on_identity_mismatch": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf(mismatchWarn, mismatchError)},
				MarkdownDescription: "What refresh and destroy do when the name of a sandbox in the state belongs to another sandbox by now. `\"warn\"` (default): a refresh removes ours from the state, a destroy succeeds, both with a warning that names both ids. `\"error\"`: both fail and keep the state. The other sandbox is left alone either way.",
			},
		},
	}
}

func tlsAttribute() schema.Attribute {
	text := func(sensitive bool, description string) schema.Attribute {
		return schema.StringAttribute{Optional: true, Sensitive: sensitive, Validators: []validator.String{notEmpty{}}, MarkdownDescription: description}
	}
	return schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "TLS towards an `https://` endpoint. Of each `_file` and `_pem` pair at most one can be set.",
		Attributes: map[string]schema.Attribute{
			"ca_cert_file":     text(false, "Path of a PEM file with the authorities that may have signed the gateway's certificate. Default: those of the system."),
			"ca_cert_pem":      text(false, "What `ca_cert_file` would hold, as text."),
			"client_cert_file": text(false, "Path of a PEM file with the certificate (chain) that this side shows. Needs a key."),
			"client_cert_pem":  text(false, "What `client_cert_file` would hold, as text."),
			"client_key_file":  text(false, "Path of a PEM file with the unencrypted key of the client certificate."),
			"client_key_pem":   text(true, "What `client_key_file` would hold, as text."),
			"insecure_skip_verify": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Accept any certificate of the gateway: whoever can redirect the connection can then read and change everything. The client certificate is shown all the same. May also be set by the environment variable `OPENSHELL_GATEWAY_INSECURE`. Default: `false`.",
			},
			"server_name": text(false, "Name to verify in the gateway's certificate. Default: the host of `endpoint`."),
		},
	}
}
