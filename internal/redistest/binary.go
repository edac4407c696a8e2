package redistest

import (
	"errors"
	"os/exec"
)

// binaries are the servers that will do, in order of preference.
var binaries = []string{"redis-server", "valkey-server"}

var errNoBinary = errors.New(`redistest: neither redis-server nor valkey-server is installed (or not in PATH), and these tests need a real one. Install it and run again:
	Debian, Ubuntu   sudo apt-get install -y redis-server
	Fedora           sudo dnf install -y redis    (or valkey)
	Alpine           sudo apk add redis
	macOS            brew install redis
or run "make test", which does this where it can`)

func findBinary() (string, error) {
	for _, name := range binaries {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNoBinary
}
