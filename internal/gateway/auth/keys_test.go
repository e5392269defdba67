package auth

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// source is an issuer whose keys and failures a test sets.
type source struct {
	mu    sync.Mutex
	keys  publicKeys
	err   error
	calls int
}

func (s *source) fetch(context.Context) (publicKeys, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	return s.keys, s.err
}

func (s *source) set(err error, ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.keys = err, publicKeys{}
	for _, id := range ids {
		s.keys[rs256(id)] = id
	}
}

func (s *source) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func rs256(id string) keyName { return keyName{id: id, algorithm: jose.RS256} }

// find returns the key itself.
func find(ctx context.Context, s *keySet, id string) (any, error) {
	found, err := s.find(ctx, rs256(id))
	if err != nil {
		return nil, err
	}
	return found.keys[rs256(id)], nil
}

// The life of a key set, step by step: what is found, and how often the issuer is asked. The clock is synctest's.
func TestKeySet(t *testing.T) {
	const ttl = time.Hour
	down := errors.New("connection refused")
	type step struct {
		after  time.Duration
		set    func(*source)
		find   string
		want   error
		asked  int // in all
		reason string
	}
	for name, steps := range map[string][]step{
		"kept for the TTL": {
			{find: "a", asked: 1},
			{after: ttl - ttl/aheadPart - 1, find: "a", asked: 1},
			{after: ttl/aheadPart + 1, find: "a", asked: 2, reason: "at the TTL"},
		},
		"fetched ahead": {
			{find: "a", asked: 1},
			{after: ttl - ttl/aheadPart, find: "a", asked: 2, reason: "beside the call"},
			{after: ttl - ttl/aheadPart - 1, find: "a", asked: 2},
			{after: 1, set: func(s *source) { s.set(down) }, find: "a", asked: 3, reason: "the call does not hear of it"},
			{find: "a", asked: 3, reason: "left alone for a second"},
			{after: time.Second, find: "a", asked: 4},
			{after: ttl/aheadPart - 2*time.Second, find: "a", asked: 5},
			{after: time.Second, find: "a", want: errNoKeys, asked: 5, reason: "too old to be trusted, and left alone"},
			{after: 4 * time.Second, set: func(s *source) { s.set(nil, "a") }, find: "a", asked: 6},
		},
		"withdrawn": {
			{find: "a", asked: 1},
			{set: func(s *source) { s.set(nil, "b") }, find: "a", asked: 1, reason: "not noticed yet"},
			{after: ttl, find: "a", want: errUnknownKey, asked: 2},
		},
		"rotated": {
			{find: "a", asked: 1},
			{set: func(s *source) { s.set(nil, "b") }, find: "b", asked: 2, reason: "at once, since the key is unknown"},
			{find: "a", want: errUnknownKey, asked: 2, reason: "gone with it, and not asked for again within a second"},
			{after: time.Second, find: "a", want: errUnknownKey, asked: 3},
		},
		"invented keys": {
			{find: "a", asked: 1},
			{find: "x1", want: errUnknownKey, asked: 2},
			{find: "x2", want: errUnknownKey, asked: 2},
			{after: missInterval - 1, find: "x3", want: errUnknownKey, asked: 2},
			{after: 1, find: "x4", want: errUnknownKey, asked: 3},
			{find: "a", asked: 3, reason: "does not suffer from it"},
		},
		"down at the start": {
			{set: func(s *source) { s.set(down) }, find: "a", want: errNoKeys, asked: 1},
			{find: "a", want: errNoKeys, asked: 1, reason: "left alone for a second"},
			{after: time.Second, find: "a", want: errNoKeys, asked: 2},
			{after: time.Second, find: "a", want: errNoKeys, asked: 2, reason: "left alone for two"},
			{after: time.Second, set: func(s *source) { s.set(nil, "a") }, find: "a", asked: 3},
		},
		"down for long": {
			{set: func(s *source) { s.set(down) }, find: "a", want: errNoKeys, asked: 1},
			{after: time.Hour, find: "a", want: errNoKeys, asked: 2},
			{after: time.Hour, find: "a", want: errNoKeys, asked: 3},
			{after: time.Hour, find: "a", want: errNoKeys, asked: 4},
			{after: time.Hour, find: "a", want: errNoKeys, asked: 5},
			{after: time.Hour, find: "a", want: errNoKeys, asked: 6},
			{after: maxRetryInterval, set: func(s *source) { s.set(nil, "a") }, find: "a", asked: 7, reason: "never left alone for longer than this"},
		},
		"down later": {
			{find: "a", asked: 1},
			{set: func(s *source) { s.set(down) }, find: "a", asked: 1, reason: "known and young"},
			{find: "b", want: errNoKeys, asked: 2, reason: "nobody can tell"},
			{find: "a", asked: 2},
			{after: ttl, find: "a", want: errNoKeys, asked: 3, reason: "too old to be trusted"},
			{after: 2 * time.Second, set: func(s *source) { s.set(nil, "a") }, find: "a", asked: 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				issuer := &source{}
				issuer.set(nil, "a")
				keys := newKeySet("https://issuer", issuer.fetch, ttl, time.Now, slog.New(slog.DiscardHandler))
				for i, s := range steps {
					time.Sleep(s.after) //nolint:forbidigo // synctest's clock: nobody waits
					if s.set != nil {
						s.set(issuer)
					}
					if key, err := find(t.Context(), keys, s.find); !errors.Is(err, s.want) || err == nil && key != s.find {
						t.Errorf("step %d %s: found %v, %v; want %v", i, s.reason, key, err, s.want)
					}
					synctest.Wait() // what is fetched beside the call
					if asked := issuer.count(); asked != s.asked {
						t.Errorf("step %d %s: asked %d times, want %d", i, s.reason, asked, s.asked)
					}
				}
			})
		})
	}
}

// A key is found under its own algorithm alone.
func TestKeyIsBoundToItsAlgorithm(t *testing.T) {
	issuer := &source{}
	issuer.set(nil, "a")
	keys := newKeySet("https://issuer", issuer.fetch, time.Hour, time.Now, slog.New(slog.DiscardHandler))
	for _, algorithm := range []jose.SignatureAlgorithm{jose.PS256, jose.RS512, jose.ES256, jose.HS256, "none", ""} {
		if _, err := keys.find(t.Context(), keyName{id: "a", algorithm: algorithm}); !errors.Is(err, errUnknownKey) {
			t.Errorf("%q: %v", algorithm, err)
		}
	}
}

// However many calls need the keys at once, the issuer is asked once, and an issuer that does not answer holds nobody up
// for longer than the time-out, nor anybody who leaves, nor anybody who needs only what is known.
func TestSlowIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		fetch := func(ctx context.Context) (publicKeys, error) {
			if asked.Add(1) == 1 {
				return publicKeys{rs256("a"): "a"}, nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		keys := newKeySet("https://issuer", fetch, time.Hour, time.Now, slog.New(slog.DiscardHandler))
		if err := keys.warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		leaving, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var calls sync.WaitGroup
		for range 20 {
			calls.Go(func() {
				if _, err := keys.find(t.Context(), rs256("new")); !errors.Is(err, errNoKeys) {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait() // one asks, the others wait
		calls.Go(func() {
			if _, err := keys.find(leaving, rs256("new")); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("who left got %v", err)
			}
			if waited := time.Since(began); waited != time.Second {
				t.Errorf("who left had to wait for %v", waited)
			}
		})
		if key, err := find(t.Context(), keys, "a"); key != "a" || err != nil || time.Since(began) != 0 {
			t.Errorf("a known key: %v, %v after %v", key, err, time.Since(began))
		}
		calls.Wait()
		if waited := time.Since(began); waited != fetchTimeout {
			t.Errorf("waited for %v, want %v", waited, fetchTimeout)
		}
		if n := asked.Load(); n != 2 {
			t.Errorf("asked %d times, want 2", n)
		}
	})
}

// While keys are fetched ahead of time, no call waits for that.
func TestNobodyWaitsForKeysFetchedAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = time.Hour
		slow := func(context.Context) (publicKeys, error) {
			time.Sleep(9 * time.Second) //nolint:forbidigo // synctest's clock: nobody waits
			return publicKeys{rs256("a"): "a"}, nil
		}
		keys := newKeySet("https://issuer", slow, ttl, time.Now, slog.New(slog.DiscardHandler))
		defer keys.close()
		if err := keys.warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		for began := time.Now(); time.Since(began) < 3*ttl; time.Sleep(time.Second) { //nolint:forbidigo // the same
			before := time.Now()
			if key, err := find(t.Context(), keys, "a"); key != "a" || err != nil || time.Since(before) != 0 {
				t.Fatalf("after %v: %v, %v, in %v", time.Since(began), key, err, time.Since(before))
			}
		}
	})
}

// What is fetched ahead ends with the gate, and that is not held against the issuer.
func TestFetchingAheadEndsWithTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		asked := 0
		fetch := func(ctx context.Context) (publicKeys, error) {
			if asked++; asked > 1 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return publicKeys{rs256("a"): "a"}, nil
		}
		keys := newKeySet("https://issuer", fetch, time.Hour, time.Now, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
		if err := keys.warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Minute) //nolint:forbidigo // synctest's clock: nobody waits
		if key, err := find(t.Context(), keys, "a"); key != "a" || err != nil {
			t.Errorf("%v, %v", key, err)
		}
		synctest.Wait()
		began := time.Now()
		keys.close()
		if asked != 2 || time.Since(began) != 0 || log.Len() != 0 {
			t.Errorf("asked %d times, ended after %v, log %q", asked, time.Since(began), log.String())
		}
	})
}

// Who asks the issuer and then leaves does not spoil it for those who wait.
func TestAskingGoesOnWhenTheCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetch := func(ctx context.Context) (publicKeys, error) {
			select {
			case <-time.After(3 * time.Second):
				return publicKeys{rs256("a"): "a"}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		keys := newKeySet("https://issuer", fetch, time.Hour, time.Now, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if key, err := find(ctx, keys, "a"); key != "a" || err != nil {
			t.Errorf("found %v, %v", key, err)
		}
	})
}

// What an issuer answers in anger does not flood the log.
func TestBrief(t *testing.T) {
	if text := brief(errors.New(strings.Repeat("x", 10_000))); len(text) > 400 {
		t.Errorf("%d bytes", len(text))
	}
	if text := brief(errors.New("short")); text != "short" {
		t.Errorf("%q", text)
	}
}
