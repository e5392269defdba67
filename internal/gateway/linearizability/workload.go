package linearizability

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
)

const (
	// callTimeout bounds a call that is not given up on purpose.
	callTimeout = 20 * time.Second
	// mostLost is how many outcomes a history may leave unknown: each doubles what the checker has to consider.
	mostLost = 5
	// operationsPerHistory keeps a history within about 200 events.
	operationsPerHistory = 120
)

// Config is that of a run.
type Config struct {
	// Seed fixes what the clients ask; not how their calls interleave.
	Seed uint64
	// Conns lead to the gateways. Clients are spread over them.
	Conns []grpc.ClientConnInterface
	// Workspace must exist and hold no sandbox whose name begins with Prefix.
	Workspace, Prefix string
	// Clients call at the same time, on Names names, each of them after a Pause.
	Clients, Names int
	Pause          time.Duration
	// InternalIsUnknown takes an INTERNAL error for an unknown outcome instead of a failure of its own, so that only what
	// the gateways did counts.
	InternalIsUnknown bool
}

// Run has clients work on the gateways until ctx ends, and hands over every history, perhaps several at a time. After
// some operations a name is left alone, its history is complete and a new name takes its place.
func Run(ctx context.Context, config Config, complete func(History)) {
	r := &run{Config: config, complete: complete}
	for range config.Names {
		r.subjects = append(r.subjects, r.newSubject())
	}
	r.lastClient = config.Clients
	var clients sync.WaitGroup
	for i := range config.Clients {
		clients.Go(func() { r.client(ctx, i) })
	}
	clients.Wait()
	for _, s := range r.subjects {
		r.handOver(s)
	}
}

type run struct {
	Config
	complete func(History)

	mu         sync.Mutex // guards what is below
	subjects   []*subject
	names      int
	lastClient int
}

// subject is a name and what is known about it.
type subject struct {
	history History
	begun   int // operations
	running int // of which are not answered yet
	lost    int // of which have, or are likely to have, an unknown outcome
	closed  bool
	// calm subjects see few changes, so that refused calls can be seen to change nothing.
	calm bool

	// What the answers so far say, latest last.
	free    bool
	holder  string // empty when it is not known
	version uint64 // of the holder; 0 when it is not known
	ids     []string
}

func (r *run) newSubject() *subject {
	r.names++
	return &subject{
		history: History{Seed: r.Seed, Workspace: r.Workspace, Name: fmt.Sprintf("%s%d", r.Prefix, r.names)},
		free:    true, calm: r.names%4 == 0,
	}
}

// client makes one call after the other. After one of unknown outcome it retires, since that call may still happen, and
// another takes its place.
func (r *run) client(ctx context.Context, number int) {
	c := newClient(r.Conns[number%len(r.Conns)], r.Workspace)
	rng := r.random(number)
	for r.pause(ctx) {
		s, request := r.begin(rng)
		o := Operation{Client: number, Call: request.call, Invoked: r.clock()}
		callCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), request.timeout)
		o.Answer = c.do(callCtx, s.history.Name, request.call, request.pace)
		cancel()
		if o.Answer.Outcome == Internal && r.InternalIsUnknown {
			o.Answer.Outcome = Unknown
		}
		o.Answered = r.clock()
		r.end(s, o, request)
		if o.Answer.Outcome == Unknown {
			number = r.successor()
			rng = r.random(number)
		}
	}
}

// pause reports whether to go on.
func (r *run) pause(ctx context.Context) bool {
	if r.Pause == 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(r.Pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *run) random(client int) *rand.Rand { return rand.New(rand.NewPCG(r.Seed, uint64(client))) }

func (r *run) clock() int64 { return int64(time.Since(epoch)) }

// epoch is when the clock of histories starts.
var epoch = time.Now()

func (r *run) successor() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastClient++
	return r.lastClient - 1
}

// begin chooses the next request.
func (r *run) begin(rng *rand.Rand) (*subject, request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := rng.IntN(len(r.subjects))
	s := r.subjects[i]
	s.begun++
	s.running++
	req := choose(rng, s, r.foreign(rng, s))
	req.call.Number = s.begun
	if req.givenUp {
		s.lost++
	}
	if s.begun == operationsPerHistory {
		r.close(i)
	}
	return s, req
}

// close has a new name take the place of a subject.
func (r *run) close(i int) {
	r.subjects[i].closed = true
	r.subjects[i] = r.newSubject()
}

// foreign is an id that has nothing to do with the name.
func (r *run) foreign(rng *rand.Rand, s *subject) string {
	if other := r.subjects[rng.IntN(len(r.subjects))]; other != s && len(other.ids) > 0 {
		return other.ids[rng.IntN(len(other.ids))]
	}
	return uuid.Must(uuid.NewRandomFromReader(reader{rng})).String()
}

// end writes down an operation.
func (r *run) end(s *subject, o Operation, req request) {
	r.mu.Lock()
	s.history.Operations = append(s.history.Operations, o)
	s.running--
	if req.givenUp {
		s.lost--
	}
	if o.Answer.Outcome == Unknown && o.Call.Kind != Get {
		s.lost++
	}
	s.learn(o)
	if s.lost >= mostLost && !s.closed {
		for i := range r.subjects {
			if r.subjects[i] == s {
				r.close(i)
			}
		}
	}
	finished := s.closed && s.running == 0
	r.mu.Unlock()
	if finished {
		r.handOver(s)
	}
}

func (r *run) handOver(s *subject) {
	if len(s.history.Operations) > 0 {
		r.complete(s.history)
	}
}

// learn keeps what an answer says about the name.
func (s *subject) learn(o Operation) {
	switch a := o.Answer; a.Outcome {
	case NotFound, AlreadyAbsent, Completed:
		s.free, s.holder, s.version = true, "", 0
	case AlreadyExists:
		s.free = false
	case Mismatch, Accepted:
		s.held(a.ID, 0)
	case OK:
		s.held(a.Sandbox.ID, a.Sandbox.Version)
	}
}

func (s *subject) held(id string, version uint64) {
	s.free, s.holder, s.version = false, id, version
	if !slices.Contains(s.ids, id) {
		s.ids = append(s.ids, id)
	}
}

// reader makes UUIDs that follow from the seed.
type reader struct{ rng *rand.Rand }

func (r reader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r.rng.Uint32())
	}
	return len(p), nil
}
