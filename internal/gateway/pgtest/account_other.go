//go:build !linux

package pgtest

import (
	"os"
	"os/exec"
)

// account is whom the server runs as; outside Linux always oneself.
type account struct{}

func findAccount() (account, error) { return account{}, nil }

func (account) ownDir() (string, error) { return os.MkdirTemp("", dirPrefix) }

func (account) assume(*exec.Cmd) {}
