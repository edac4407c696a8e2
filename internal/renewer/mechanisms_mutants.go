//go:build mutants

package renewer

var clockRead = true

// Mechanisms are the switches of this build, by name. All are on at first. No Renewer
// may be in use while one is changed.
var Mechanisms = map[string]*bool{"clock-read": &clockRead}
