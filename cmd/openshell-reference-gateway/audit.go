package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/alecthomas/kong"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// auditCommand is the first argument that asks for the audit instead of a gateway.
const auditCommand = "audit"

// auditPage is how many records are read at once.
const auditPage = 500

type auditFlags struct {
	DBURL     string    `name:"db-url" help:"Database of the gateway. A SQLite file can be read while no gateway has it." env:"OPENSHELL_DB_URL" default:"${db_url}"`
	Workspace string    `help:"Only deletes in this workspace."`
	Name      string    `help:"Only deletes of sandboxes with this name."`
	Since     time.Time `help:"Only what was decided at this time (RFC 3339) or later, such as 2026-01-31T12:00:00Z." placeholder:"TIME"`
}

// auditLine is a record as it is printed.
type auditLine struct {
	At               time.Time     `json:"at"`
	Outcome          store.Outcome `json:"outcome"`
	SettledAt        *time.Time    `json:"settled_at,omitempty"`
	Workspace        string        `json:"workspace"`
	Name             string        `json:"name"`
	SandboxID        string        `json:"sandbox_id"`
	ExpectedID       string        `json:"expected_id,omitempty"`
	ExpectedVersion  uint64        `json:"expected_resource_version,omitempty"`
	Method           string        `json:"method"`
	IdentityProvider string        `json:"identity_provider"`
	Issuer           string        `json:"issuer,omitempty"`
	Subject          string        `json:"subject"`
	ID               string        `json:"id"`
}

// printAudit prints what the gateway has recorded of deletes, a line of JSON each, oldest first. It returns the exit code.
func printAudit(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parseAudit(args, stdout, stderr)
	switch {
	case errors.Is(err, errHelped):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "openshell-reference-gateway audit: %v\n", err)
		return exitUsage
	}
	if err := f.print(ctx, stdout); err != nil {
		fmt.Fprintf(stderr, "openshell-reference-gateway audit: %v\n", err)
		return exitFailed
	}
	return 0
}

func parseAudit(args []string, stdout, stderr io.Writer) (f auditFlags, err error) {
	shown := false
	parser, err := kong.New(&f,
		kong.Name("openshell-reference-gateway audit"),
		kong.Description("Prints what a gateway has recorded of deletes: a line of JSON for each, oldest first."),
		kong.Vars{"db_url": defaultDBURL()},
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { shown = true }),
	)
	if err != nil {
		return f, err
	}
	_, err = parser.Parse(args)
	if shown {
		return f, errHelped
	}
	return f, err
}

func (f auditFlags) print(ctx context.Context, out io.Writer) (err error) {
	s, err := gateway.OpenAudit(ctx, f.DBURL)
	if err != nil {
		return fmt.Errorf("--db-url: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	lines := json.NewEncoder(out)
	query := store.AuditQuery{Workspace: f.Workspace, Name: f.Name, Since: f.Since, Limit: auditPage}
	for {
		page, err := s.ListAudit(ctx, query)
		if err != nil {
			return err
		}
		for _, record := range page {
			if err := lines.Encode(lineOf(record)); err != nil {
				return err
			}
		}
		if len(page) < auditPage {
			return nil
		}
		query.After = &page[len(page)-1]
	}
}

func lineOf(r store.AuditRecord) auditLine {
	line := auditLine{
		At: r.At, Outcome: r.Outcome, Workspace: r.Workspace, Name: r.Name, SandboxID: r.SandboxID, Method: r.Method,
		IdentityProvider: r.Caller.IdentityProvider, Issuer: r.Caller.Issuer, Subject: r.Caller.Subject, ID: r.ID,
	}
	if !r.SettledAt.IsZero() {
		line.SettledAt = &r.SettledAt
	}
	if r.Expected != nil {
		line.ExpectedID, line.ExpectedVersion = r.Expected.ID, r.Expected.ResourceVersion
	}
	return line
}
