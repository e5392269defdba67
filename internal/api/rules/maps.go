package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits of maps, in entries and bytes.
const (
	MaxEntries     = 128
	MaxKey         = 256
	MaxValue       = 8192
	MaxEnvironment = 256 * 1024 // all keys and values
)

// reservedPrefix marks environment variables that the gateway sets itself.
const reservedPrefix = "OPENSHELL_"

// EnvironmentKey checks the name of an environment variable.
func EnvironmentKey(key string) string {
	switch {
	case len(key) > MaxKey:
		return fmt.Sprintf("must be at most %d bytes long", MaxKey)
	case key == "" || !consistsOf(key, lower+upper+digits+"_") || strings.Contains(digits, key[:1]):
		return "must be a letter or underscore, then letters, digits and underscores"
	case strings.HasPrefix(key, reservedPrefix):
		return "must not begin with " + reservedPrefix + ", which is the gateway's own"
	}
	return ""
}

// EnvironmentValue checks the value of an environment variable, without repeating it.
func EnvironmentValue(value string) string {
	switch {
	case len(value) > MaxValue:
		return fmt.Sprintf("must be at most %d bytes long", MaxValue)
	case strings.ContainsAny(value, "\x00\r\n"):
		return "must not contain NUL, carriage return or line feed"
	}
	return ""
}

// Environment checks all variables.
func Environment(field string, environment map[string]string) *Violation {
	if len(environment) > MaxEntries {
		return tooMany(field)
	}
	total := 0
	for _, key := range slices.Sorted(maps.Keys(environment)) {
		if problem := EnvironmentKey(key); problem != "" {
			return violation(field, "key %q %s", shortened(key), problem)
		}
		if problem := EnvironmentValue(environment[key]); problem != "" {
			return violation(field+"["+key+"]", "%s", problem)
		}
		total += len(key) + len(environment[key])
	}
	if total > MaxEnvironment {
		return violation(field, "must be at most %d bytes in all, keys and values together", MaxEnvironment)
	}
	return nil
}

// Annotations checks the annotations of an object.
func Annotations(field string, annotations map[string]string) *Violation {
	if v := sizes(field, annotations); v != nil {
		return v
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if problem := LabelKey(key); problem != "" {
			return violation(field, "key %q %s", key, problem)
		}
	}
	return nil
}

// sizes checks a map of texts that may say anything.
func sizes(field string, m map[string]string) *Violation { return bounded(field, m, MaxEntries) }

func bounded(field string, m map[string]string, entries int) *Violation {
	if len(m) > entries {
		return violation(field, "must have at most %d entries, not %d", entries, len(m))
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if len(key) > MaxKey {
			return violation(field, "key %q must be at most %d bytes long", shortened(key), MaxKey)
		}
		if len(m[key]) > MaxValue {
			return violation(field+"["+key+"]", "must be at most %d bytes long", MaxValue)
		}
	}
	return nil
}

func tooMany(field string) *Violation {
	return violation(field, "must have at most %d entries", MaxEntries)
}

// shortened keeps a key of any length fit for a message.
func shortened(key string) string {
	if len(key) > MaxKey {
		return key[:32] + "…"
	}
	return key
}
