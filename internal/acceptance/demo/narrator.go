package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
)

const width = 100

// narrator prints the demo for people.
type narrator struct {
	out   io.Writer
	steps int
}

func (n *narrator) title(text string) {
	fmt.Fprintf(n.out, "\n%s\n%s\n", text, strings.Repeat("=", len(text)))
}

func (n *narrator) step(text string) {
	n.steps++
	fmt.Fprintf(n.out, "\n%2d. %s\n", n.steps, text)
}

// typed shows what somebody would type.
func (n *narrator) typed(text string) { n.paragraph("    $ ", text) }

func (n *narrator) fact(format string, args ...any) {
	n.paragraph("    ", fmt.Sprintf(format, args...))
}

// proves tells what the step has shown.
func (n *narrator) proves(text string) { n.paragraph("    => ", text) }

func (n *narrator) diagnostic(d cli.Diagnostic) {
	n.paragraph("    | ", strings.ToUpper(d.Severity[:1])+d.Severity[1:]+": "+d.Summary)
	for line := range strings.Lines(d.Detail) {
		n.paragraph("    |   ", strings.TrimSpace(line))
	}
}

// paragraph wraps text behind a prefix that the following lines are indented by.
func (n *narrator) paragraph(prefix, text string) {
	line := prefix
	next := strings.Repeat(" ", len(prefix))
	if strings.HasPrefix(strings.TrimSpace(prefix), "|") {
		next = prefix
	}
	empty := true
	for _, word := range strings.Fields(text) {
		if !empty && len(line)+1+len(word) > width {
			fmt.Fprintln(n.out, line)
			line, empty = next, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	fmt.Fprintln(n.out, strings.TrimRight(line, " "))
}
