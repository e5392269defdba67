package server

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// ImportProviderProfiles stores new profiles, all or none. What is wrong with them is no error of the call: it is said in
// diagnostics.
func (s *Server) ImportProviderProfiles(ctx context.Context, req *openshellv1.ImportProviderProfilesRequest) (*openshellv1.ImportProviderProfilesResponse, error) {
	workspace, err := s.profileScope(ctx, req.GetWorkspaceScope(), s.enterActive)
	if err != nil {
		return nil, err
	}
	if err := admit(req.GetRequestId()); err != nil {
		return nil, err
	}
	found := checkProfiles(req.GetProfiles())
	if found.refuse() {
		return &openshellv1.ImportProviderProfilesResponse{Diagnostics: found.all}, nil
	}
	wanted := make([]store.Object, 0, len(req.GetProfiles()))
	for _, item := range req.GetProfiles() {
		payload, err := profilePayload(item.GetProfile())
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, store.Object{ID: uuid.NewString(), Key: profileKey(workspace, item.GetProfile().GetId()), Payload: payload})
	}

	var created []store.Object
	var conflicts diagnostics
	err = s.Store.Transact(ctx, func(tx store.Tx) error {
		created, conflicts = nil, diagnostics{}
		for i, o := range wanted {
			conflicts.about(req.GetProfiles()[i])
			if err := shadows(tx, o.Key, &conflicts); err != nil {
				return err
			}
			stored, err := tx.CreateObject(o)
			switch {
			case errors.Is(err, store.ErrAlreadyExists):
				conflicts.add("id", severityError, "provider profile '%s' already exists here; update or delete it", o.Name)
			case err != nil:
				return err
			}
			created = append(created, stored)
		}
		if conflicts.refuse() {
			return errRefused
		}
		return nil
	})
	found.all = append(found.all, conflicts.all...)
	if errors.Is(err, errRefused) {
		return &openshellv1.ImportProviderProfilesResponse{Diagnostics: found.all}, nil
	}
	if err != nil {
		return nil, inWorkspace(workspace, err)
	}
	reply := &openshellv1.ImportProviderProfilesResponse{Diagnostics: found.all, Imported: true}
	reply.Profiles, err = decodeAll(created, profileProto)
	return reply, err
}

// errRefused undoes a transaction whose answer is in diagnostics.
var errRefused = errors.New("refused")

// shadows warns of a platform-wide profile that a workspace will not see any more.
func shadows(tx store.Tx, key store.Key, found *diagnostics) error {
	if key.Workspace == "" {
		return nil
	}
	_, err := tx.Object(profileKey("", key.Name))
	if errors.Is(err, store.ErrObjectNotFound) {
		return nil
	}
	if err == nil {
		found.add("id", severityWarning, "provider profile '%s' shadows a platform-wide one in workspace '%s'", key.Name, key.Workspace)
	}
	return err
}

// profilePayload leaves out what the gateway says of a profile itself.
func profilePayload(profile *openshellv1.ProviderProfile) ([]byte, error) {
	profile = proto.CloneOf(profile)
	profile.ResourceVersion, profile.Source, profile.Scope = 0, "", ""
	return encode(profile)
}
