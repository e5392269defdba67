package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is whom the server runs as. PostgreSQL refuses to run as root.
type account struct {
	credential *syscall.Credential // nil: as oneself
}

// findAccount is oneself, or for root the user that the distribution made for PostgreSQL, or else nobody.
func findAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errUID == nil && errGID == nil {
			return account{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
		}
	}
	return account{}, &missingError{"PostgreSQL refuses to run as root and there is neither a user postgres nor nobody to run it as"}
}

// ownDir makes a new directory that belongs to the account, at a place where the account gets to it.
func (a account) ownDir() (string, error) {
	if a.credential == nil {
		return os.MkdirTemp("", dirPrefix)
	}
	for _, parent := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if !enterable(parent) {
			continue
		}
		dir, err := os.MkdirTemp(parent, dirPrefix)
		if err != nil {
			return "", err
		}
		return dir, os.Chown(dir, int(a.credential.Uid), int(a.credential.Gid))
	}
	return "", fmt.Errorf("no temporary directory that another user may enter: tried %s, /tmp and /var/tmp", os.TempDir())
}

// enterable reports whether anybody may enter dir.
func enterable(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
		dir = filepath.Dir(dir)
	}
}

// assume makes cmd run as the account.
func (a account) assume(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential}
}
