package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/alecthomas/kong"
)

// configFile gives flags the values of a TOML file, whose keys are their names, with - or _ between the words. Flags and
// variables win.
type configFile map[string]any

// readConfig reads a file. A key that is no flag is an error: it would be a wish passed over.
func readConfig(path string, app *kong.Application) (configFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	raw := map[string]any{}
	if err := toml.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("--config %s: %w", path, err)
	}
	file := configFile{}
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		name := strings.ReplaceAll(key, "_", "-")
		if !slices.ContainsFunc(app.Flags, func(f *kong.Flag) bool { return f.Name == name && configurable(f) }) {
			return nil, fmt.Errorf("--config %s: unknown key %q; the keys are the names of the flags, see --help", path, key)
		}
		if _, twice := file[name]; twice {
			return nil, fmt.Errorf("--config %s: the key %q is there twice", path, key)
		}
		file[name] = raw[key]
	}
	return file, nil
}

func configurable(f *kong.Flag) bool {
	return f.Name != "help" && f.Name != "version" && f.Name != "config"
}

// Validate implements [kong.Resolver].
func (c configFile) Validate(*kong.Application) error { return nil }

// Resolve implements [kong.Resolver]. It is not asked about flags that are on the command line.
func (c configFile) Resolve(_ *kong.Context, _ *kong.Path, f *kong.Flag) (any, error) {
	for _, name := range f.Envs {
		if _, set := os.LookupEnv(name); set {
			return nil, nil
		}
	}
	value, ok := c[f.Name]
	if !ok {
		return nil, nil
	}
	return value, nil
}
