//go:build !unix

package child

import (
	"errors"
	"runtime"
)

var errNoSignals = errors.New("not possible on " + runtime.GOOS + ", which has no such signals")

func (p *Process) terminate() error { return errNoSignals }
func (p *Process) freeze() error    { return errNoSignals }
func (p *Process) thaw() error      { return errNoSignals }
