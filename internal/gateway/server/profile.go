package server

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// Values of ProviderProfile.scope and source (upstream-contract, pseudo enums).
const (
	scopePlatform  = "platform"
	scopeWorkspace = "workspace"
	sourceUser     = "user"
)

// profileKey is the key of a provider profile; without a workspace, of a platform-wide one.
func profileKey(workspace, id string) store.Key {
	return store.Key{Kind: store.KindProfile, Workspace: workspace, Name: id}
}

// profileProto is a profile as clients see it.
func profileProto(o store.Object) (*openshellv1.ProviderProfile, error) {
	profile, err := decode[openshellv1.ProviderProfile](o)
	if err != nil {
		return nil, err
	}
	profile.Id, profile.ResourceVersion, profile.Source, profile.Scope = o.Name, o.ResourceVersion, sourceUser, scopeWorkspace
	if o.Workspace == "" {
		profile.Scope = scopePlatform
	}
	return profile, nil
}

// profileScope settles which profiles a call is about: those of a workspace, which enter lets the caller into, or, when the
// request names none, the platform-wide ones, which are for platform administrators.
func (s *Server) profileScope(ctx context.Context, scope *datamodelv1.WorkspaceSelector, enter enterFunc) (string, error) {
	if scope == nil {
		return "", auth.RequirePlatformAdmin(ctx)
	}
	return within(ctx, scope, enter)
}

// profileID reads the id in a request, whatever its case. Upstream adds no details to what is wrong with it.
func profileID(id string) (string, error) {
	id = strings.ToLower(strings.TrimSpace(id))
	if id == "" {
		return "", status.Error(codes.InvalidArgument, "id is required")
	}
	if problem := rules.ProfileID(id); problem != "" {
		return "", status.Error(codes.InvalidArgument, "id "+problem)
	}
	return id, nil
}

func noProfile(workspace, id string) error {
	if workspace == "" {
		return status.Errorf(codes.NotFound, "provider profile '%s' not found among the platform-wide ones", id)
	}
	return status.Errorf(codes.NotFound, "provider profile '%s' not found in workspace '%s'", id, workspace)
}

// GetProviderProfile reads a profile. One of the workspace wins over a platform-wide one.
func (s *Server) GetProviderProfile(ctx context.Context, req *openshellv1.GetProviderProfileRequest) (*openshellv1.ProviderProfileResponse, error) {
	id, err := profileID(req.GetId())
	if err != nil {
		return nil, err
	}
	workspace, err := s.profileScope(ctx, req.GetWorkspaceScope(), s.enter)
	if err != nil {
		return nil, err
	}
	o, err := s.Store.Object(ctx, profileKey(workspace, id))
	if errors.Is(err, store.ErrObjectNotFound) && workspace != "" {
		o, err = s.Store.Object(ctx, profileKey("", id))
	}
	if errors.Is(err, store.ErrObjectNotFound) {
		return nil, noProfile(workspace, id)
	}
	if err != nil {
		return nil, err
	}
	profile, err := profileProto(o)
	return &openshellv1.ProviderProfileResponse{Profile: profile}, err
}

// ListProviderProfiles reads a page of profiles by id: those that a workspace sees, platform-wide ones before its own, or
// only the platform-wide ones.
func (s *Server) ListProviderProfiles(ctx context.Context, req *openshellv1.ListProviderProfilesRequest) (*openshellv1.ListProviderProfilesResponse, error) {
	size, err := pageSize(req.GetPageSize())
	if err != nil {
		return nil, err
	}
	workspace, err := s.profileScope(ctx, req.GetWorkspaceScope(), s.enter)
	if err != nil {
		return nil, err
	}
	p, err := readPage(ctx, size, req.GetPageToken(), openshellv1.OpenShell_ListProviderProfiles_FullMethodName, workspace)
	if err != nil {
		return nil, err
	}
	query := store.ObjectQuery{Kind: store.KindProfile, Workspaces: []string{""}, ByName: true, After: p.after, Limit: p.size}
	if workspace != "" {
		query.Workspaces = append(query.Workspaces, workspace)
	}
	list, err := s.Store.ListObjects(ctx, query)
	if err != nil {
		return nil, err
	}
	reply := &openshellv1.ListProviderProfilesResponse{NextPageToken: next(p, list, position)}
	reply.Profiles, err = decodeAll(list.Rows, profileProto)
	return reply, err
}

// DeleteProviderProfile deletes a profile that no provider is of.
func (s *Server) DeleteProviderProfile(ctx context.Context, req *openshellv1.DeleteProviderProfileRequest) (*openshellv1.DeleteProviderProfileResponse, error) {
	id, err := profileID(req.GetId())
	if err != nil {
		return nil, err
	}
	workspace, err := s.profileScope(ctx, req.GetWorkspaceScope(), s.enter)
	if err != nil {
		return nil, err
	}
	request, err := newRequest(ctx, workspace, req, nil)
	if err != nil {
		return nil, err
	}
	outcome, err := s.remove(ctx, request, profileKey(workspace, id), req.GetAllowMissing())
	var inUse *store.InUseError
	switch {
	case errors.Is(err, store.ErrObjectNotFound):
		return nil, noProfile(workspace, id)
	case errors.As(err, &inUse):
		return nil, status.Errorf(codes.FailedPrecondition,
			"provider profile '%s' is in use by %s and was not deleted; delete these providers first", id, referrerNames(inUse.By))
	}
	return &openshellv1.DeleteProviderProfileResponse{Outcome: outcome}, err
}

// UpdateProviderProfiles replaces a profile that is at the expected version.
func (s *Server) UpdateProviderProfiles(ctx context.Context, req *openshellv1.UpdateProviderProfilesRequest) (*openshellv1.UpdateProviderProfilesResponse, error) {
	profile := req.GetProfile().GetProfile()
	if profile == nil {
		return nil, status.Error(codes.InvalidArgument, "profile is required")
	}
	id, err := profileID(req.GetId())
	if err != nil {
		return nil, err
	}
	expected, err := expectedProfileVersion(req)
	if err != nil {
		return nil, err
	}
	workspace, err := s.profileScope(ctx, req.GetWorkspaceScope(), s.enter)
	if err != nil {
		return nil, err
	}
	request, err := newRequest(ctx, workspace, req, nil)
	if err != nil {
		return nil, err
	}

	found := checkProfile(req.GetProfile())
	if profile.GetId() != id {
		found.add("id", severityError, "is '%s', but the profile to be updated is '%s'; the id of a profile never changes", profile.GetId(), id)
	}
	if found.refuse() {
		return &openshellv1.UpdateProviderProfilesResponse{Diagnostics: found.all}, nil
	}
	payload, err := profilePayload(profile)
	if err != nil {
		return nil, err
	}
	var updated store.Object
	reply, err := mutate(ctx, s, request, func(tx store.Tx) (_ store.Outcome, _ string, err error) {
		if updated, err = replaceProfile(tx, profileKey(workspace, id), expected, payload); err == nil {
			err = checkReach(tx, updated)
		}
		return store.OutcomeDone, updated.ID, err
	}, func() (*openshellv1.UpdateProviderProfilesResponse, error) {
		return updatedProfile(found, updated, nil)
	}, func(ctx context.Context, before store.Admitted) (*openshellv1.UpdateProviderProfilesResponse, error) {
		o, err := s.subject(ctx, before.SubjectID)
		return updatedProfile(found, o, err)
	})
	var broken *brokenSandboxError
	switch {
	case errors.Is(err, store.ErrObjectNotFound):
		return nil, noProfile(workspace, id)
	case errors.As(err, &broken):
		found.add("endpoints", severityError, "%v", broken)
		return &openshellv1.UpdateProviderProfilesResponse{Diagnostics: found.all}, nil
	}
	return reply, err
}

func replaceProfile(tx store.Tx, key store.Key, expected uint64, payload []byte) (store.Object, error) {
	o, err := tx.LockObject(key)
	if err != nil {
		return store.Object{}, err
	}
	if o.ResourceVersion != expected { // upstream adds no details to this one
		return store.Object{}, status.Errorf(codes.Aborted,
			"provider profile '%s' is at resource version %d, not at the expected %d; read it again", key.Name, o.ResourceVersion, expected)
	}
	o.Payload = payload
	return tx.WriteObject(o)
}

func updatedProfile(found diagnostics, o store.Object, err error) (*openshellv1.UpdateProviderProfilesResponse, error) {
	if err != nil {
		return nil, err
	}
	profile, err := profileProto(o)
	return &openshellv1.UpdateProviderProfilesResponse{Diagnostics: found.all, Profile: profile, Updated: true}, err
}

// expectedProfileVersion is in the request or in the profile, and must be somewhere.
func expectedProfileVersion(req *openshellv1.UpdateProviderProfilesRequest) (uint64, error) {
	const field = "expected_resource_version"
	embedded := req.GetProfile().GetProfile().GetResourceVersion()
	switch expected := req.GetExpectedResourceVersion(); {
	case expected == 0 && embedded == 0:
		return 0, &apierr.InvalidArgument{Field: field, Problem: "is required: give the resource_version that the profile was read at"}
	case expected != 0 && embedded != 0 && expected != embedded:
		return 0, &apierr.InvalidArgument{Field: field, Problem: "differs from profile.resource_version; give one of them"}
	default:
		return max(expected, embedded), nil
	}
}
