package client

import (
	"context"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// Sandboxes lists the sandboxes of a workspace, or of all of them when workspace is empty, which takes a platform
// administrator. A selector, if not empty, keeps those that carry its labels. A sandbox that is not listed need not be gone:
// pages are read one after the other.
func (c *Client) Sandboxes(ctx context.Context, workspace, selector string) ([]*openshellv1.Sandbox, error) {
	request := &openshellv1.ListSandboxesRequest{LabelSelector: selector, WorkspaceScope: scope(workspace)}
	if workspace == "" {
		request.WorkspaceScope = &datamodelv1.WorkspaceSelector{Selection: &datamodelv1.WorkspaceSelector_AllWorkspaces{AllWorkspaces: &datamodelv1.AllWorkspaces{}}}
	}
	var all []*openshellv1.Sandbox
	for {
		reply, err := read(ctx, c, "ListSandboxes", c.openshell.ListSandboxes, request)
		if err != nil {
			return nil, err
		}
		all = append(all, reply.GetSandboxes()...)
		switch reply.GetNextPageToken() {
		case "":
			return all, nil
		case request.GetPageToken():
			return nil, &BrokenReplyError{Call: "ListSandboxes", Problem: "the next page is the same page again"}
		}
		request.PageToken = reply.GetNextPageToken()
	}
}
