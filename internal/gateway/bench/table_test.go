package bench

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// table is printed as Markdown, to go into the docs as it is.
type table struct {
	b     *testing.B
	lines []string
}

func newTable(b *testing.B, columns ...string) *table {
	b.Helper()
	t := &table{b: b}
	t.line(columns)
	t.lines = append(t.lines, strings.Repeat("|---", len(columns))+"|")
	return t
}

func (t *table) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = fmt.Sprint(cell)
	}
	t.line(texts)
}

func (t *table) line(cells []string) { t.lines = append(t.lines, "| "+strings.Join(cells, " | ")+" |") }

func (t *table) print() {
	t.b.Helper()
	t.b.Log("\n" + strings.Join(t.lines, "\n"))
}

// rate and ratio print a dash for what was not measured.
func rate(v float64) string  { return number("%.0f", v) }
func ratio(v float64) string { return number("%.2f", v) }

func number(format string, v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	return fmt.Sprintf(format, v)
}
