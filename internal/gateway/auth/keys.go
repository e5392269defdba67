package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// fetchTimeout bounds one attempt to get the issuer's keys.
	fetchTimeout = 10 * time.Second
	// missInterval is the least time between two fetches that tokens with unknown keys cause, so that nobody can make the
	// gateway flood its issuer by inventing keys.
	missInterval = time.Second
	// After a failure the issuer is left alone for a while, longer with every further one.
	minRetryInterval = time.Second
	maxRetryInterval = 15 * time.Second
	// aheadPart is the part of the TTL, at its end, in which keys are fetched beside the calls that use the old ones. So no call
	// waits for an issuer that is slow, and none hears of an outage that is shorter.
	aheadPart = 10
	// rememberedTokens is how many verified tokens are kept, so that those in use need not be verified at every call.
	rememberedTokens = 1024
)

var (
	// errUnknownKey: the issuer publishes no such key.
	errUnknownKey = errors.New("unknown key")
	// errNoKeys: the issuer's keys are not known, because it could not be asked.
	errNoKeys = errors.New("the issuer's keys cannot be had")
)

// keyName is how a token names a key. The algorithm is part of it, so that a key verifies with its own algorithm alone.
type keyName struct {
	id        string
	algorithm jose.SignatureAlgorithm
}

type publicKeys map[keyName]any

// keySet keeps an issuer's keys for a while. They are fetched when a token needs them: the first time, when they come to the
// end of the TTL, and when it names a key that is not among them, for then the issuer may have changed its keys.
// One call at a time asks the issuer; those that have what they need do not wait for it.
type keySet struct {
	issuer string
	fetch  func(ctx context.Context) (publicKeys, error)
	ttl    time.Duration
	now    func() time.Time
	logger *slog.Logger

	current atomic.Pointer[fetchedKeys]
	// turn holds the right to ask the issuer and to touch what is below; a channel, so that waiting for it ends with the call.
	turn     chan struct{}
	missedAt time.Time
	failure  error
	retryAt  time.Time
	interval time.Duration

	// ahead are fetches beside the calls, which end with working.
	ahead   sync.WaitGroup
	working context.Context
	stop    context.CancelFunc
}

// fetchedKeys are the keys of one answer of the issuer, with the tokens that one of them has verified: what is known of a
// token lasts no longer than the key.
type fetchedKeys struct {
	keys   publicKeys
	at     time.Time
	tokens *lru.Cache[[sha256.Size]byte, signedToken] // by the hash of their text
}

func newKeySet(issuer string, fetch func(context.Context) (publicKeys, error), ttl time.Duration, now func() time.Time, logger *slog.Logger) *keySet {
	working, stop := context.WithCancel(context.Background())
	return &keySet{
		issuer: issuer, fetch: fetch, ttl: ttl, now: now, logger: logger, turn: make(chan struct{}, 1), working: working, stop: stop,
	}
}

// close ends what goes on beside the calls. It is for the end, when there are no more of them.
func (s *keySet) close() {
	s.stop()
	s.ahead.Wait()
}

// warm fetches the keys before the first token needs them. It is for the start, when nothing else uses the set.
func (s *keySet) warm(ctx context.Context) error {
	_, err := s.refresh(ctx, s.now())
	return err
}

// find returns keys that have one of this name, or [errUnknownKey], or [errNoKeys] when it cannot be told whether there is
// such a key.
func (s *keySet) find(ctx context.Context, name keyName) (*fetchedKeys, error) {
	if fetched := s.usable(); fetched.has(name) {
		return fetched, nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", errNoKeys, context.Cause(ctx))
	}
	fetched := s.usable()
	if fetched.has(name) { // since this call began to wait
		return fetched, nil
	}
	now := s.now()
	if s.failure != nil && now.Before(s.retryAt) {
		return nil, s.failure
	}
	if fetched != nil {
		if now.Sub(s.missedAt) < missInterval {
			return nil, errUnknownKey
		}
		s.missedAt = now
	}
	// It goes on when this caller leaves, since others wait for the answer too, but not for long.
	fetched, err := s.refresh(context.WithoutCancel(ctx), now)
	if err != nil {
		return nil, err
	}
	if fetched.has(name) {
		return fetched, nil
	}
	return nil, errUnknownKey
}

// usable returns the keys that are young enough, or nil.
func (s *keySet) usable() *fetchedKeys {
	fetched := s.current.Load()
	if fetched == nil {
		return nil
	}
	left := s.ttl - s.now().Sub(fetched.at)
	switch {
	case left <= 0:
		return nil
	case left <= s.ttl/aheadPart:
		s.fetchAhead(fetched)
	}
	return fetched
}

// fetchAhead asks the issuer for younger keys than these, unless somebody is asking it or has just failed to.
func (s *keySet) fetchAhead(old *fetchedKeys) {
	select {
	case s.turn <- struct{}{}:
	default:
		return
	}
	now := s.now()
	if s.current.Load() != old || s.failure != nil && now.Before(s.retryAt) {
		<-s.turn
		return
	}
	s.ahead.Go(func() {
		defer func() { <-s.turn }()
		_, _ = s.refresh(s.working, now) // which says in the log what is wrong
	})
}

func (f *fetchedKeys) has(name keyName) bool { return f != nil && f.keys[name] != nil }

// refresh asks the issuer; one at a time does so.
func (s *keySet) refresh(ctx context.Context, now time.Time) (*fetchedKeys, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	keys, err := s.fetch(ctx)
	if errors.Is(ctx.Err(), context.Canceled) { // nobody wants them any more, which says nothing of the issuer
		return nil, fmt.Errorf("%w: %w", errNoKeys, context.Cause(ctx))
	}
	if err != nil {
		s.interval = min(max(2*s.interval, minRetryInterval), maxRetryInterval)
		s.failure, s.retryAt = fmt.Errorf("%w: %w", errNoKeys, err), s.now().Add(s.interval)
		s.logger.Warn("the keys of the OIDC issuer cannot be fetched; callers with a token that needs them get UNAVAILABLE",
			"issuer", s.issuer, "error", brief(err), "retry_after_seconds", s.interval.Seconds())
		return nil, s.failure
	}
	if s.failure != nil || s.current.Load() == nil {
		s.logger.Info("fetched the keys of the OIDC issuer", "issuer", s.issuer, "keys", len(keys))
	}
	s.failure, s.interval = nil, 0
	tokens, err := lru.New[[sha256.Size]byte, signedToken](rememberedTokens)
	if err != nil {
		return nil, err
	}
	fetched := &fetchedKeys{keys: keys, at: now, tokens: tokens}
	s.current.Store(fetched)
	return fetched, nil
}

// brief keeps an issuer's error page out of the log.
func brief(err error) string {
	const limit = 300
	if text := err.Error(); len(text) <= limit {
		return text
	}
	return err.Error()[:limit] + "…"
}
