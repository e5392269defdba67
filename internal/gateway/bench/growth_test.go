package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

const reads = 2000

var sizes = []int{100, 10_000, 100_000}

// BenchmarkGrowth prints what reads cost in databases of different sizes, measured in turn, and how much memory the
// gateways hold after that.
func BenchmarkGrowth(b *testing.B) {
	table := newTable(b, "store", "sandboxes", "Get (median)", "against the smallest", "List, 100 of them (median)", "against the smallest", "resident memory")
	for _, s := range stores(b) {
		var gateways []*gateway
		for _, rows := range sizes {
			url := s.newDatabase(b)
			s.fill(b, url, rows)
			gateways = append(gateways, start(b, s.binary, url))
		}
		for i := range reads { // what is read is in memory from then on
			for k, g := range gateways {
				g.get(b, rowName(i*7919%sizes[k]))
			}
		}
		gets, lists := make([][]float64, len(sizes)), make([][]float64, len(sizes))
		for i := range reads {
			for k, g := range gateways {
				gets[k] = append(gets[k], g.get(b, rowName(i*7919%sizes[k])))
				if i%20 == 0 {
					lists[k] = append(lists[k], g.list(b))
				}
			}
		}
		for k, g := range gateways {
			get, list := median(gets[k]), median(lists[k])
			table.row(s.name, sizes[k], duration(get), ratio(get/median(gets[0])), duration(list), ratio(list/median(lists[0])), residentMemory(b, g.PID()))
		}
	}
	table.print()
}

func duration(ns float64) string { return time.Duration(ns).Round(time.Microsecond).String() }

// get returns how long a read by name took, in nanoseconds.
func (g *gateway) get(b *testing.B, name string) float64 {
	b.Helper()
	client := openshellv1.NewOpenShellClient(g.conns[0])
	began := time.Now()
	if _, err := client.GetSandbox(b.Context(), &openshellv1.GetSandboxRequest{Name: name, WorkspaceScope: scope()}); err != nil {
		b.Fatal(err)
	}
	return float64(time.Since(began))
}

// list returns how long the first page took, in nanoseconds.
func (g *gateway) list(b *testing.B) float64 {
	b.Helper()
	client := openshellv1.NewOpenShellClient(g.conns[0])
	began := time.Now()
	reply, err := client.ListSandboxes(b.Context(), &openshellv1.ListSandboxesRequest{PageSize: 100, WorkspaceScope: scope()})
	if err != nil || len(reply.GetSandboxes()) != 100 {
		b.Fatalf("%d sandboxes (%v)", len(reply.GetSandboxes()), err)
	}
	return float64(time.Since(began))
}

// residentMemory is what the kernel says a process holds; a dash where there is no /proc.
func residentMemory(b *testing.B, pid int) string {
	b.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return "–"
	}
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmRSS:")); ok {
			kib, err := strconv.Atoi(string(bytes.Fields(rest)[0]))
			if err != nil {
				b.Fatal(err)
			}
			return fmt.Sprintf("%d MiB", kib/1024)
		}
	}
	return "–"
}
