package linearizability

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/pgtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/processtest"
)

const (
	// envSeed repeats the requests of a run.
	envSeed = "OPENSHELL_LIN_SEED"
	// envDuration is how long a proof runs, such as 10m. It goes on longer until it has seen what it must.
	envDuration     = "OPENSHELL_LIN_DURATION"
	defaultDuration = 3 * time.Second
	// coverageTimeout is how much longer.
	coverageTimeout = time.Minute
)

func seed(t *testing.T) uint64 {
	t.Helper()
	value := os.Getenv(envSeed)
	if value == "" {
		return uint64(rand.Uint32())
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", envSeed, err)
	}
	return n
}

func duration(t *testing.T) time.Duration {
	t.Helper()
	value := os.Getenv(envDuration)
	if value == "" {
		return defaultDuration
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		t.Fatalf("%s: %v", envDuration, err)
	}
	return d
}

// mustSee are the outcomes without which a run has shown little.
var mustSee = []string{
	"plain create: ok", "plain create: already exists", "plain create: unknown",
	"plain delete: accepted", "plain delete: completed", "plain get: ok", "plain get: not found",
	"conditional delete: accepted", "conditional delete: completed", "conditional delete: identity mismatch", "conditional delete: not found",
	"conditional delete: already absent", "conditional delete: version conflict", "conditional delete: unknown", "conditional delete: driver refused",
	"conditional stop: ok", "conditional stop: identity mismatch", "conditional start: ok", "conditional start: identity mismatch",
}

// missing lists what a run has not shown yet.
func missing(s Stats) []string {
	var lack []string
	for _, key := range mustSee {
		if s.Outcomes[key] == 0 {
			lack = append(lack, key)
		}
	}
	if s.Quiet == 0 {
		lack = append(lack, "a refused call that left a settled sandbox alone")
	}
	return lack
}

// fast keeps a few names hot.
func fast(seed uint64, conns []grpc.ClientConnInterface) Config {
	return Config{Seed: seed, Conns: conns, Workspace: "default", Prefix: "hot-", Clients: 8, Names: 2}
}

// slow makes histories that are longer than the lease of an operation, so that work whose gateway died is taken over
// within them.
func slow(seed uint64, conns []grpc.ClientConnInterface) Config {
	return Config{Seed: seed + 1, Conns: conns, Workspace: "default", Prefix: "slow-", Clients: 6, Names: 2, Pause: 500 * time.Millisecond}
}

// prove looks for a violation for as long as the environment says.
func prove(t *testing.T, conns []grpc.ClientConnInterface) {
	t.Helper()
	first, least := seed(t), duration(t)
	ctx, cancel := context.WithTimeout(t.Context(), least+coverageTimeout)
	defer cancel()
	began := time.Now()
	enough := func(s Stats) bool { return time.Since(began) >= least && len(missing(s)) == 0 }
	stats, violation := Prove(ctx, enough, fast(first, conns), slow(first, conns))
	t.Logf("seed %d, %s: %s", first, time.Since(began).Round(time.Millisecond), stats)
	if violation != nil {
		t.Fatal(violation.Report())
	}
	if lack := missing(stats); len(lack) > 0 {
		t.Errorf("the run did not see: %s", strings.Join(lack, ", "))
	}
}

func TestLinearizable(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { prove(t, onSQLite(t, nil)) })
	t.Run("PostgreSQL, three processes, one killed now and then", func(t *testing.T) {
		url, binary := pgtest.NewDatabase(t), processtest.Build(t)
		gateways, conns := onProcesses(t, binary, url)
		stop := killNowAndThen(t, gateways)
		prove(t, conns)
		if kills := stop(); kills == 0 {
			t.Error("no gateway was killed")
		} else {
			t.Logf("%d times a gateway was killed and replaced", kills)
		}
		nothingIsStuck(t, conns[0])
	})
}

// TestReplay checks a history that an earlier run wrote down.
func TestReplay(t *testing.T) {
	path := os.Getenv(EnvReplay)
	if path == "" {
		t.Skipf("%s names no history", EnvReplay)
	}
	h, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range h.Operations {
		t.Logf("[%9.3f ms, %9.3f ms] %s", float64(o.Invoked)/1e6, float64(o.Answered)/1e6, o)
	}
	if v := Check(h); len(v.Problems) > 0 {
		t.Error((&Violation{History: h, Verdict: v}).Report())
	}
}

func TestReportCanBeReplayed(t *testing.T) {
	h := written(create("A"), answer(Delete, "A", Accepted, "A"), get("A", wireReady))
	h.Seed = 7
	t.Setenv("TMPDIR", t.TempDir())
	report := (&Violation{History: h, Verdict: Check(h)}).Report()
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), "*", "history.*"))
	if len(found) != 2 || !strings.Contains(report, "seed 7") {
		t.Fatalf("wrote %v and said: %s", found, report)
	}
	for _, path := range found {
		if !strings.Contains(report, path) {
			t.Errorf("the report does not name %s: %s", path, report)
		}
		if filepath.Ext(path) != ".json" {
			continue
		}
		again, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(Check(again).Problems, "\n"), strings.Join(Check(h).Problems, "\n"); got != want {
			t.Errorf("the replay says %s, want %s", got, want)
		}
	}
}
