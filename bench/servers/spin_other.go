//go:build !linux

package servers

import "errors"

// Spin is for Linux: elsewhere it would be in the way.
func Spin() error { return errors.New("spinning at idle priority works on Linux only") }
