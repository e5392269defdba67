package server

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// encode makes the payload of an object.
func encode(m proto.Message) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// decode reads the payload of an object.
func decode[M any, P interface {
	*M
	proto.Message
}](o store.Object) (P, error) {
	m := P(new(M))
	if err := proto.Unmarshal(o.Payload, m); err != nil {
		return nil, fmt.Errorf("payload of %s %s: %w", o.Kind, o.ID, err)
	}
	return m, nil
}

// metadata is what every object shows of itself.
func metadata(o store.Object) *datamodelv1.ObjectMeta {
	return &datamodelv1.ObjectMeta{
		Id: o.ID, Name: o.Name, Workspace: o.Workspace, Labels: o.Labels,
		ResourceVersion: o.ResourceVersion, CreatedTime: timestamppb.New(o.CreatedAt),
	}
}

// position is the place of an object in a list.
func position(o store.Object) store.Cursor {
	return store.Cursor{CreatedAt: o.CreatedAt, Name: o.Name, Workspace: o.Workspace, ID: o.ID}
}

// labelledList asks for a page of objects of one workspace or of all, and perhaps only for those with some labels.
type labelledList interface {
	GetPageSize() int32
	GetPageToken() string
	GetLabelSelector() string
	GetWorkspaceScope() *datamodelv1.WorkspaceSelector
}

// listLabelled reads a page of a kind, oldest first, and makes the token of the next.
func (s *Server) listLabelled(ctx context.Context, kind store.Kind, method string, req labelledList) ([]store.Object, string, error) {
	size, err := pageSize(req.GetPageSize())
	if err != nil {
		return nil, "", err
	}
	labels, err := labelSelector(req.GetLabelSelector())
	if err != nil {
		return nil, "", err
	}
	workspace, err := s.listed(ctx, req.GetWorkspaceScope())
	if err != nil {
		return nil, "", err
	}
	p, err := readPage(ctx, size, req.GetPageToken(), method, workspace, req.GetLabelSelector())
	if err != nil {
		return nil, "", err
	}
	query := store.ObjectQuery{Kind: kind, Labels: labels, After: p.after, Limit: p.size}
	if workspace != "" {
		query.Workspaces = []string{workspace}
	}
	list, err := s.Store.ListObjects(ctx, query)
	if err != nil {
		return nil, "", err
	}
	return list.Rows, next(p, list, position), nil
}

// decodeAll turns the rows of a page into messages.
func decodeAll[T any](rows []store.Object, decode func(store.Object) (T, error)) ([]T, error) {
	all := make([]T, 0, len(rows))
	for _, row := range rows {
		item, err := decode(row)
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}
