package server

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// providerReader reads the providers of sandboxes, each once.
type providerReader struct {
	object func(store.Key) (store.Object, error)
	now    time.Time
	known  map[store.Key]*datamodelv1.Provider
	rows   map[store.Key]store.Object // of those that are known
}

func newProviderReader(object func(store.Key) (store.Object, error), now time.Time) providerReader {
	return providerReader{object: object, now: now, known: map[store.Key]*datamodelv1.Provider{}, rows: map[store.Key]store.Object{}}
}

// providers reads providers outside of a transaction.
func (s *Server) providers(ctx context.Context) providerReader {
	return newProviderReader(s.object(ctx), time.Now())
}

// compatible checks that providers exist and do not set the same environment variables.
func (r providerReader) compatible(workspace string, names []string) error {
	variables := newEnvironments(r.now)
	for _, name := range names {
		provider, err := r.read(store.ProviderKey(workspace, name))
		if err != nil {
			return err
		}
		if err := variables.add(name, provider); err != nil {
			return err
		}
	}
	return nil
}

func (r providerReader) read(key store.Key) (*datamodelv1.Provider, error) {
	if known := r.known[key]; known != nil {
		return known, nil
	}
	o, err := r.object(key)
	if errors.Is(err, store.ErrObjectNotFound) {
		return nil, missingProvider(key.Name, key.Workspace)
	}
	if err != nil {
		return nil, err
	}
	provider, err := decode[datamodelv1.Provider](o)
	if err == nil {
		r.known[key], r.rows[key] = provider, o
	}
	return provider, err
}

func missingProvider(name, workspace string) error {
	return status.Errorf(codes.FailedPrecondition, "provider '%s' not found in workspace '%s'; create it first", name, workspace)
}

// environments finds the environment variables that two providers of one sandbox would both set.
type environments struct {
	now   time.Time
	owner map[string]string // of a variable
}

func newEnvironments(now time.Time) environments {
	return environments{now: now, owner: map[string]string{}}
}

// add takes the variables of one more provider. Those of expired credentials are not set.
func (e environments) add(name string, provider *datamodelv1.Provider) error {
	for _, key := range slices.Sorted(maps.Keys(provider.GetCredentials())) {
		if rules.EnvironmentKey(key) != "" || expired(provider, key, e.now) {
			continue
		}
		if other, taken := e.owner[key]; taken {
			return status.Errorf(codes.FailedPrecondition,
				"provider '%s' and provider '%s' both set the environment variable %s; a sandbox can have one of them", other, name, key)
		}
		e.owner[key] = name
	}
	return nil
}

func expired(provider *datamodelv1.Provider, key string, now time.Time) bool {
	at, set := provider.GetCredentialExpirationTimes()[key]
	return set && !at.AsTime().After(now)
}
