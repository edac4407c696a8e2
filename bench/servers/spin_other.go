//go:build !linux

package servers

import "errors"

// Spin works on Linux only: elsewhere it would delay other programs.
func Spin() error { return errors.New("spinning at idle priority works on Linux only") }
