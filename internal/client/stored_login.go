package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/openshell-iac/terraform-provider-openshell/internal/client/registration"
)

// StoredLogin is the login that the openshell command line keeps for a gateway. It is read for every call, so that a new
// login counts at once, and never written.
type StoredLogin struct {
	// Path is that of the file, see registration.Registration.
	Path string
	// Gateway is the name to show.
	Gateway string
}

func (StoredLogin) attribute() string { return "gateway" }

func (l StoredLogin) source() (tokenSource, error) {
	_, err := l.token(context.Background(), "")
	return l, asConfigError(err)
}

func (l StoredLogin) token(_ context.Context, refused string) (string, error) {
	token, err := registration.ReadLogin(l.Path, l.Gateway)
	if unusable, ok := errors.AsType[*registration.Error](err); ok {
		return "", &CredentialError{Attribute: l.attribute(), Problem: unusable.Problem, Remedy: unusable.Remedy}
	}
	remedy := fmt.Sprintf("log in again: openshell gateway login %s", l.Gateway)
	if problem := badToken(token); problem != "" {
		return "", &CredentialError{Attribute: l.attribute(), Problem: "the stored login " + l.Path + " is damaged: " + problem, Remedy: remedy}
	}
	if token == refused {
		return "", &CredentialError{Attribute: l.attribute(), Problem: fmt.Sprintf("there is no newer login at gateway %q", l.Gateway), Remedy: remedy}
	}
	return token, nil
}
