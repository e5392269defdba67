package server

import (
	"context"
	"errors"
	"strings"

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
	request, err := newRequest(ctx, workspace, req, nil)
	if err != nil {
		return nil, err
	}
	found := checkProfiles(req.GetProfiles())
	if found.refuse() {
		return &openshellv1.ImportProviderProfilesResponse{Diagnostics: found.all}, nil
	}
	i := profileImport{items: req.GetProfiles()}
	for _, item := range i.items {
		payload, err := profilePayload(item.GetProfile())
		if err != nil {
			return nil, err
		}
		i.wanted = append(i.wanted, store.Object{ID: uuid.NewString(), Key: profileKey(workspace, item.GetProfile().GetId()), Payload: payload})
	}
	reply, err := mutate(ctx, s, request, i.run, func() (*openshellv1.ImportProviderProfilesResponse, error) {
		return importedProfiles(append(found.all, i.conflicts.all...), i.created)
	}, func(ctx context.Context, before store.Admitted) (*openshellv1.ImportProviderProfilesResponse, error) {
		if err := i.recall(ctx, s, before); err != nil {
			return nil, err
		}
		return importedProfiles(append(found.all, i.conflicts.all...), i.created)
	})
	if errors.Is(err, errRefused) {
		return &openshellv1.ImportProviderProfilesResponse{Diagnostics: append(found.all, i.conflicts.all...)}, nil
	}
	return reply, inWorkspace(workspace, err)
}

func importedProfiles(found []*openshellv1.ProviderProfileDiagnostic, created []store.Object) (*openshellv1.ImportProviderProfilesResponse, error) {
	profiles, err := decodeAll(created, profileProto)
	return &openshellv1.ImportProviderProfilesResponse{Diagnostics: found, Profiles: profiles, Imported: true}, err
}

// profileImport is one import and, after its transaction, what came of it.
type profileImport struct {
	items  []*openshellv1.ProviderProfileImportItem
	wanted []store.Object // one an item

	created   []store.Object
	conflicts diagnostics
}

func (i *profileImport) run(tx store.Tx) (outcome store.Outcome, ids string, err error) {
	i.created, i.conflicts = nil, diagnostics{}
	for n, o := range i.wanted {
		i.conflicts.about(i.items[n])
		if err := shadows(tx.Object, o.Key, &i.conflicts); err != nil {
			return outcome, "", err
		}
		stored, err := tx.CreateObject(o)
		switch {
		case errors.Is(err, store.ErrAlreadyExists):
			i.conflicts.add("id", severityError, "provider profile '%s' already exists here; update or delete it", o.Name)
		case err != nil:
			return outcome, "", err
		}
		i.created = append(i.created, stored)
		ids += " " + stored.ID
	}
	if i.conflicts.refuse() {
		return outcome, "", errRefused
	}
	return store.OutcomeDone, strings.TrimSpace(ids), nil
}

// recall finds the profiles, as they are now, of an import that was made before.
func (i *profileImport) recall(ctx context.Context, s *Server, before store.Admitted) error {
	i.created, i.conflicts = nil, diagnostics{}
	for n, id := range strings.Split(before.SubjectID, " ") {
		o, err := s.subject(ctx, id)
		if err != nil {
			return err
		}
		i.created = append(i.created, o)
		i.conflicts.about(i.items[n])
		read := func(key store.Key) (store.Object, error) { return s.Store.Object(ctx, key) }
		if err := shadows(read, o.Key, &i.conflicts); err != nil {
			return err
		}
	}
	return nil
}

// errRefused undoes a transaction whose answer is in diagnostics.
var errRefused = errors.New("refused")

// shadows warns of a platform-wide profile that a workspace will not see any more.
func shadows(read func(store.Key) (store.Object, error), key store.Key, found *diagnostics) error {
	if key.Workspace == "" {
		return nil
	}
	_, err := read(profileKey("", key.Name))
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
