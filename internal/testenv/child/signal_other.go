//go:build !unix

package child

import (
	"errors"
	"os"
	"runtime"
)

var errNoSignals = errors.New("not possible on " + runtime.GOOS + ", which has no such signals")

func (p *Process) terminate() error { return errNoSignals }
func (p *Process) freeze() error    { return errNoSignals }
func (p *Process) thaw() error      { return errNoSignals }

// Freeze is not possible here.
func Freeze(*os.Process) error { return errNoSignals }
