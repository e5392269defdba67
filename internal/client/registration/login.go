package registration

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"
)

// expiryMargin is how long before its end a token counts as expired, as the command line has it.
const expiryMargin = 30 * time.Second

// ReadLogin returns the access token of a stored login (oidc_token.json) if it is still valid. It is not renewed here: the
// refresh token in the file can be used once, and it is the command line's. Errors are of type [*Error].
func ReadLogin(path, gateway string) (string, error) {
	again := fmt.Sprintf("log in again: openshell gateway login %s", gateway)
	fault := func(format string, a ...any) (string, error) {
		return "", &Error{Problem: fmt.Sprintf(format, a...), Remedy: again}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return fault("there is no login at gateway %q: %v", gateway, err)
	}
	var login struct {
		AccessToken string    `json:"access_token"`
		ExpiresAt   *float64  `json:"expires_at"` // Unix seconds, from the command line
		Expiry      time.Time `json:"expiry"`     // from the Go SDK
	}
	if err := json.Unmarshal(content, &login); err != nil { // the cause may show what it stumbled over
		return fault("the stored login %s is damaged: it is no JSON, or its keys have other types", path)
	}
	if login.AccessToken == "" {
		return fault("the stored login %s holds no access_token", path)
	}
	end := login.Expiry
	if login.ExpiresAt != nil {
		whole, part := math.Modf(*login.ExpiresAt)
		end = time.Unix(int64(whole), int64(part*1e9))
	}
	if !end.IsZero() && time.Until(end) < expiryMargin {
		return fault("the login at gateway %q expired, or is about to, on %s", gateway, end.UTC().Format(time.DateTime+" MST"))
	}
	return login.AccessToken, nil
}
