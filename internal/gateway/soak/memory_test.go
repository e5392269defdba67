package soak

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// samples are taken in equal steps.
	samples = 30
	// settled is how long a run must be to say something about the memory: at first caches and connections fill.
	settled = time.Minute
	// growth and slack bound what the median of the last third may exceed that of the first by: a factor, and bytes on top
	// for the calls that happen to be under way.
	growth = 1.2
	slack  = 16 << 20
)

// usage is the memory in use over time.
type usage struct {
	// heap is what is left after a garbage collection; resident is what the process has from the system, the pages of SQLite
	// included, which are no part of the heap. Bytes; resident is 0 where /proc does not tell.
	heap, resident []uint64
}

// observe samples the memory in equal steps until ctx ends, which it does after a duration.
func observe(ctx context.Context, duration time.Duration) usage {
	ticker := time.NewTicker(duration / (samples + 1))
	defer ticker.Stop()
	var u usage
	for {
		select {
		case <-ticker.C:
			runtime.GC()
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			u.heap, u.resident = append(u.heap, stats.HeapAlloc), append(u.resident, resident())
		case <-ctx.Done():
			return u
		}
	}
}

// judge fails the test when the last third of the samples is above the first. Short runs are not judged.
func (u usage) judge(t *testing.T, duration time.Duration) {
	t.Helper()
	if duration < settled {
		return
	}
	if len(u.heap) < 3 {
		t.Fatalf("only %d samples of the memory", len(u.heap))
	}
	for name, values := range map[string][]uint64{"heap": u.heap, "resident memory": u.resident} {
		third := len(values) / 3
		first, last := median(values[:third]), median(values[len(values)-third:])
		t.Logf("%s: median of the first third %d KiB, of the last third %d KiB", name, first>>10, last>>10)
		if float64(last) > growth*float64(first)+slack {
			t.Errorf("the %s has grown: %d bytes", name, values)
		}
	}
}

func median(values []uint64) uint64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// resident is the second field of /proc/self/statm, in pages.
func resident() uint64 {
	content, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(content))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}
