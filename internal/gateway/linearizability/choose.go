package linearizability

import (
	"math/rand/v2"
	"time"
)

// request is a call with what the checker need not know.
type request struct {
	call    Call
	pace    pace
	timeout time.Duration
	// givenUp is true when the timeout is likely to end the call before its answer comes.
	givenUp bool
}

// choose picks what a client asks next, from what has been seen of the name. It runs with the run's lock held.
func choose(rng *rand.Rand, s *subject, foreign string) request {
	req := request{timeout: callTimeout}
	if s.free {
		req.call.Kind = weighted(rng, choice{Create, 10}, choice{Get, 5}, choice{Delete, 3}, choice{Stop, 1}, choice{Start, 1})
	} else {
		req.call.Kind = weighted(rng, choice{Get, 6}, choice{Delete, 7}, choice{Create, 1}, choice{Stop, 4}, choice{Start, 3})
	}
	switch req.call.Kind {
	case Create:
		req.pace = pace{create: upTo(rng, 2), ready: upTo(rng, 4), remove: upTo(rng, 4)}
		// Such a sandbox stays for good, so that the rest of the history is about it.
		req.call.RefusesDelete = s.begun > operationsPerHistory*3/4 && rng.IntN(4) == 0
	case Delete:
		req.call.AllowMissing = rng.IntN(2) == 0
		req.call.precondition(rng, s, foreign)
	case Stop, Start:
		req.call.precondition(rng, s, foreign)
	}
	if s.lost < mostLost-1 && rng.IntN(25) == 0 {
		req.givenUp = true
		req.timeout = time.Duration(rng.IntN(3000)) * time.Microsecond
	}
	return req
}

// precondition makes most changes conditional: upon the id that seems right, one that held the name before, or one that
// never did.
func (c *Call) precondition(rng *rand.Rand, s *subject, foreign string) {
	n := rng.IntN(10)
	if s.calm && rng.IntN(12) > 0 {
		n = 9
	}
	switch {
	case n < 2: // plain
	case n < 6 && s.holder != "":
		c.ExpectID = s.holder
		if s.version != 0 && rng.IntN(4) == 0 {
			c.ExpectVersion = s.version - rng.Uint64N(min(s.version, 2)) // or the one before
		}
	case n < 8 && len(s.ids) > 0:
		c.ExpectID = s.ids[max(0, len(s.ids)-1-rng.IntN(3))]
	default:
		c.ExpectID = foreign
	}
}

type choice struct {
	kind   Kind
	weight int
}

func weighted(rng *rand.Rand, choices ...choice) Kind {
	sum := 0
	for _, c := range choices {
		sum += c.weight
	}
	n := rng.IntN(sum)
	for _, c := range choices {
		if n -= c.weight; n < 0 {
			return c.kind
		}
	}
	return Get
}

// upTo is zero half of the time, else a random time of at most so many milliseconds.
func upTo(rng *rand.Rand, milliseconds int) time.Duration {
	if rng.IntN(2) == 0 {
		return 0
	}
	return time.Duration(rng.IntN(milliseconds*1000)) * time.Microsecond
}
