package runner

import "strings"

// Environ returns base with add applied: each "KEY=value" in add replaces all
// earlier values of its key.
func Environ(base []string, add ...string) []string {
	over := make(map[string]bool, len(add))
	for _, kv := range add {
		key, _, _ := strings.Cut(kv, "=")
		over[key] = true
	}
	env := make([]string, 0, len(base)+len(add))
	for _, kv := range base {
		if key, _, _ := strings.Cut(kv, "="); !over[key] {
			env = append(env, kv)
		}
	}
	return append(env, add...)
}
