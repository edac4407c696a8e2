package runner

import "strings"

// Environ returns base with each of the "KEY=value" in add taking the place of
// every earlier value of its key.
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
