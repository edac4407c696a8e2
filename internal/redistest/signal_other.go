//go:build !unix

package redistest

import (
	"errors"
	"runtime"
)

var errNoSignals = errors.New("not possible on " + runtime.GOOS + ", which has no such signals")

func (p *process) terminate() error { return errNoSignals }
func (p *process) freeze() error    { return errNoSignals }
func (p *process) thaw() error      { return errNoSignals }
