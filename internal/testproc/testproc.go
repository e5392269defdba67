// Package testproc starts processes for tests that must not outlive them.
package testproc

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Start starts cmd and returns a channel that is closed when it has ended; cmd.ProcessState then tells how. On Linux the
// kernel sends it the signal when this process dies, however that happens.
func Start(cmd *exec.Cmd, signal syscall.Signal) (ended <-chan struct{}, err error) {
	dieWithParent(cmd, signal)
	done := make(chan struct{})
	started := make(chan error, 1)
	go func() {
		defer close(done)
		// The kernel watches the thread that started the process, so the thread has to stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // also in cmd.ProcessState
		}
	}()
	return done, <-started
}
