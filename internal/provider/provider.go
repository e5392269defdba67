// Package provider is the Terraform provider: schemas, plans, and the create, read, update and delete of each type. It
// speaks to a gateway through package client alone.
package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
)

var _ provider.ProviderWithValidateConfig = (*openshellProvider)(nil)

type openshellProvider struct{ version string }

// NewServer makes what answers a command line: the provider behind the framework's server.
func NewServer(version string) func() tfprotov6.ProviderServer {
	return func() tfprotov6.ProviderServer {
		server := providerserver.NewProtocol6(New(version)())()
		if whole, ok := server.(frameworkServer); ok {
			return policyDocuments{whole}
		}
		panic(fmt.Sprintf("%T cannot do what the framework's server does", server))
	}
}

// New makes the provider; version is its own, for the gateway's log.
func New(version string) func() provider.Provider {
	return func() provider.Provider { return &openshellProvider{version: version} }
}

func (p *openshellProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "openshell"
	resp.Version = p.version
}

func (p *openshellProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{newSandboxResource}
}

func (p *openshellProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{newSandboxDataSource, newSandboxesDataSource, newGatewayDataSource, newCurrentUserDataSource, newPolicyDocumentDataSource}
}

// providerData is what Configure hands to every resource and data source.
type providerData struct {
	// client is nil while the configuration has values that are not known yet.
	client *client.Client
	// unknown names those values.
	unknown []string
	// workspace is the default for resources that name none; empty while it is not known.
	workspace string

	allowUnconditionalDelete bool
	mismatchIsError          bool
}
