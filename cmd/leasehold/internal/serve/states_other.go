//go:build !unix

package serve

import "os"

// OpenStates makes the folder of states, unless it is there. The operator sees to it that one
// server uses it.
func OpenStates(dir string) (done func(), err error) {
	return func() {}, os.MkdirAll(dir, 0o700)
}
