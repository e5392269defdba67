//go:build !unix

package cli

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func interruptGroup(p *os.Process) error { return p.Kill() }

func terminate(p *os.Process) error { return p.Kill() }

func killGroup(p *os.Process) error { return p.Kill() }
