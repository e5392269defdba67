package pgtest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// minMajor is the oldest PostgreSQL that the gateway supports.
const minMajor = 15

// missingError says what a machine lacks to run PostgreSQL.
type missingError struct{ what string }

func (e *missingError) Error() string {
	return fmt.Sprintf("%s; install PostgreSQL %d or newer (on Debian: apt-get install postgresql), "+
		"or name a running server, as a URL that may create databases, in %s", e.what, minMajor, EnvServer)
}

// binaries is one installation of PostgreSQL.
type binaries struct {
	initdb, postgres string
	major            int
}

// findBinaries returns the newest installation, from PATH or from where distributions put them beside it.
func findBinaries() (binaries, error) {
	var dirs []string
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin"} {
		found, _ := filepath.Glob(pattern) // fails only for a bad pattern
		dirs = append(dirs, found...)
	}
	var best binaries
	var problems []string
	for _, dir := range dirs {
		candidate, err := inspect(dir)
		if err != nil {
			problems = append(problems, err.Error())
		} else if candidate.major > best.major {
			best = candidate
		}
	}
	switch {
	case best.major >= minMajor:
		return best, nil
	case best.major > 0:
		return binaries{}, &missingError{fmt.Sprintf("%s is PostgreSQL %d", best.postgres, best.major)}
	case len(problems) > 0:
		return binaries{}, &missingError{"no usable PostgreSQL: " + strings.Join(problems, "; ")}
	}
	return binaries{}, &missingError{"postgres and initdb are neither in PATH nor in /usr/lib/postgresql/*/bin"}
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// inspect looks at the binaries in dir.
func inspect(dir string) (binaries, error) {
	b := binaries{initdb: filepath.Join(dir, "initdb"), postgres: filepath.Join(dir, "postgres")}
	if runtime.GOOS == "windows" {
		return binaries{}, fmt.Errorf("%s: not supported on Windows", dir)
	}
	if _, err := exec.LookPath(b.initdb); err != nil {
		return binaries{}, err
	}
	output, err := exec.Command(b.postgres, "-V").Output()
	if err != nil {
		return binaries{}, fmt.Errorf("%s -V: %w", b.postgres, err)
	}
	match := versionPattern.FindSubmatch(output)
	if match == nil {
		return binaries{}, fmt.Errorf("%s -V said %q", b.postgres, output)
	}
	b.major, err = strconv.Atoi(string(match[1]))
	return b, err
}
