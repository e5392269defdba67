package authtest

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"time"
)

// Program is a program at an issuer, which gets tokens for its id and secret (client credentials, RFC 6749 section 4.4).
type Program struct {
	ID, Secret string
	// Lifetime is that of its tokens; 0 is an hour.
	Lifetime time.Duration
	// Claims are changes as in [Issuer.Claims]. The subject is the ID.
	Claims map[string]any
}

// Register makes the issuer know a program, or know it anew.
func (i *Issuer) Register(p Program) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.programs[p.ID] = p
}

// Grants are the forms of the requests for a token so far, without the secrets.
func (i *Issuer) Grants() []url.Values {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]url.Values{}, i.grants...)
}

func (i *Issuer) serveToken(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	form := r.PostForm
	id, secret := form.Get("client_id"), form.Get("client_secret")
	if user, password, ok := r.BasicAuth(); ok {
		id, secret = user, password
	}
	form.Del("client_secret")
	i.mu.Lock()
	i.grants = append(i.grants, form)
	p, known := i.programs[id]
	i.mu.Unlock()
	if !known || secret != p.Secret || form.Get("grant_type") != "client_credentials" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		// As bad issuers do, it repeats what it was sent.
		i.write(w, map[string]any{"error": "invalid_client", "error_description": "no program " + id + " with secret " + secret})
		return
	}
	lifetime := p.Lifetime
	if lifetime == 0 {
		lifetime = time.Hour
	}
	claims := map[string]any{"exp": time.Now().Add(lifetime).Unix(), "jti": rand.Text()}
	for name, value := range p.Claims {
		claims[name] = value
	}
	i.write(w, map[string]any{"access_token": i.Token(id, claims), "token_type": "Bearer", "expires_in": int(lifetime.Seconds())})
}
