package bench

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/pgtest"
)

const (
	// pairs is how often plain and conditional deletes are measured in turn.
	pairs = 15
	// deletesPerClient is the size of one sample.
	deletesPerClient = 30
)

var clients = []int{1, 8, 64}

func TestMain(m *testing.M) { pgtest.Main(m) }

// BenchmarkDelete prints one table: deletes per second, and how they compare.
func BenchmarkDelete(b *testing.B) {
	b.Logf("disk: fdatasync of 4 KiB takes %s (median of %d)", syncTime(b).Round(time.Microsecond), syncs)
	table := newTable(b, "store", "clients", "plain/s", "conditional/s", "conditional/plain", "95% of the pairs' median",
		"bare one by one/s", "cond./one by one", "bare in groups/s", "cond./groups", "etcd/s", "cond./etcd")
	for _, s := range stores(b) {
		for _, n := range clients {
			plain, conditional, ratios := s.pairs(b, n)
			single, grouped := s.bare(b, n)
			compared := etcd(b, n)
			low, high := medianInterval(ratios)
			c := median(conditional)
			table.row(s.name, n, rate(median(plain)), rate(c), ratio(median(ratios)), fmt.Sprintf("%.2f to %.2f", low, high),
				rate(single), ratio(c/single), rate(grouped), ratio(c/grouped), rate(compared), ratio(c/compared))
		}
	}
	table.print()
}

// pairs measures plain and conditional deletes in turn and returns the rates of each and the ratio of each pair.
func (s storeUnderTest) pairs(b *testing.B, n int) (plain, conditional, ratios []float64) {
	b.Helper()
	g := s.gateway(b)
	for pair := range pairs {
		kinds := []bool{false, true}
		if pair%2 == 1 { // neither is always the first
			kinds = []bool{true, false}
		}
		var rates [2]float64
		for _, guarded := range kinds {
			r := g.deletes(b, n, guarded)
			if guarded {
				rates[1] = r
			} else {
				rates[0] = r
			}
		}
		plain, conditional = append(plain, rates[0]), append(conditional, rates[1])
		ratios = append(ratios, rates[1]/rates[0])
	}
	return plain, conditional, ratios
}

// deletes makes sandboxes and measures deletes of them by n clients at once, in deletes a second.
func (g *gateway) deletes(b *testing.B, n int, guarded bool) float64 {
	b.Helper()
	ids := make([][]string, n)
	each(b, n, func(client int) error {
		for i := range deletesPerClient {
			id, err := g.create(b.Context(), client, name(client, i))
			if err != nil {
				return err
			}
			ids[client] = append(ids[client], id)
		}
		return nil
	})
	return perSecond(n*deletesPerClient, each(b, n, func(client int) error {
		for i, id := range ids[client] {
			if err := g.delete(b.Context(), client, name(client, i), id, guarded); err != nil {
				return err
			}
		}
		return nil
	}))
}

func name(client, i int) string { return fmt.Sprintf("c%d-%d", client, i) }

// each runs a function for n clients at once and returns how long they took together.
func each(b *testing.B, n int, run func(client int) error) time.Duration {
	b.Helper()
	var wg sync.WaitGroup
	began := time.Now()
	for client := range n {
		wg.Go(func() {
			if err := run(client); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	if b.Failed() {
		b.FailNow()
	}
	return took
}

func perSecond(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// medianInterval is the distribution-free 95% interval of the median: by the binomial distribution, for 15 values it
// reaches from the 4th to the 12th (96.5%).
func medianInterval(values []float64) (low, high float64) {
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare)
	skip := len(sorted) * 3 / 15
	return sorted[skip], sorted[len(sorted)-1-skip]
}

const syncs = 200

// syncTime is the median time that the disk takes to have 4 KiB for good.
func syncTime(b *testing.B) time.Duration {
	b.Helper()
	f, err := os.CreateTemp(b.TempDir(), "sync")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	page := make([]byte, 4096)
	times := make([]float64, syncs)
	for i := range times {
		began := time.Now()
		if _, err := f.WriteAt(page, int64(i*len(page))); err != nil {
			b.Fatal(err)
		}
		if err := dataSync(f); err != nil {
			b.Fatal(err)
		}
		times[i] = float64(time.Since(began))
	}
	return time.Duration(median(times))
}
