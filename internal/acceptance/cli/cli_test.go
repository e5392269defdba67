package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	installed := Require(t)
	variable := map[Product]string{Terraform: EnvTerraform, OpenTofu: EnvOpenTofu}
	other := map[Product]string{Terraform: EnvOpenTofu, OpenTofu: EnvTerraform}[installed.Product]
	nowhere := func(t *testing.T) {
		t.Setenv("PATH", "")
		t.Chdir(t.TempDir())
	}
	env := func(key, value string) func(string) string {
		return func(asked string) string {
			if asked == key {
				return value
			}
			return ""
		}
	}

	t.Run("a machine without any", func(t *testing.T) {
		nowhere(t)
		if clis, err := find(t.Context(), env("", "")); err != nil || len(clis) != 0 {
			t.Errorf("found %v, %v", clis, err)
		}
	})
	t.Run("named by the environment", func(t *testing.T) {
		nowhere(t)
		clis, err := find(t.Context(), env(variable[installed.Product], installed.Path))
		if err != nil || len(clis) != 1 || clis[0].String() != installed.String() {
			t.Errorf("found %v, %v; want %s", clis, err, installed)
		}
	})
	t.Run("named as the other product", func(t *testing.T) {
		_, err := find(t.Context(), env(other, installed.Path))
		if err == nil || !strings.Contains(err.Error(), other) || !strings.Contains(err.Error(), installed.String()) {
			t.Errorf("error %v; want one that names %s and %s", err, other, installed)
		}
	})
	t.Run("in bin of the module", func(t *testing.T) {
		nowhere(t)
		if err := os.WriteFile("go.mod", []byte("module example.test/m\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir("bin", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(installed.Path, filepath.Join("bin", string(installed.Product))); err != nil {
			t.Fatal(err)
		}
		clis, err := find(t.Context(), env("", ""))
		if err != nil || len(clis) != 1 || clis[0].Product != installed.Product {
			t.Errorf("found %v, %v", clis, err)
		}
	})
	t.Run("too old or something else", func(t *testing.T) {
		nowhere(t)
		for _, says := range []string{"Terraform v1.10.5", "Packer v1.11.0"} {
			path := script(t, "terraform", "echo '"+says+"'")
			if _, err := find(t.Context(), env(EnvTerraform, path)); err == nil {
				t.Errorf("a binary that says %q was accepted", says)
			}
		}
	})
}

// script makes an executable shell script.
func script(t *testing.T, name, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEnvironmentIsTheRunsOwn(t *testing.T) {
	got := environment([]string{
		"PATH=/bin", "HOME=/root", "TF_CLI_ARGS=-x", "TF_VAR_a=b", "OPENSHELL_TOKEN=t", "XDG_CONFIG_HOME=/c", "LANG=C",
	}, "/own", "/own/cli.tfrc")
	for _, want := range []string{"PATH=/bin", "LANG=C", "HOME=/own", "TF_CLI_CONFIG_FILE=/own/cli.tfrc"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %v", want, got)
		}
	}
	for _, entry := range got {
		for _, foreign := range []string{"TF_CLI_ARGS=", "TF_VAR_", "OPENSHELL_", "XDG_", "HOME=/root"} {
			if strings.HasPrefix(entry, foreign) {
				t.Errorf("%s reaches the run", entry)
			}
		}
	}
}

// builtin is a working directory whose configuration needs no provider but the one built into every command line.
func builtin(t *testing.T, c CLI, config string) *WorkingDir {
	t.Helper()
	w, err := New(t.TempDir(), Options{CLI: c})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write("main.tf", config); err != nil {
		t.Fatal(err)
	}
	return w
}

func must(t *testing.T, r Result) Result {
	t.Helper()
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return r
}

// canceled is a context that has ended.
func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
