package localredis

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// ServerVariable is the environment variable that names another server program than that in PATH.
const ServerVariable = "LEASEHOLD_REDIS_SERVER"

// binaries are the suitable server programs, in order of preference.
var binaries = []string{"redis-server", "valkey-server"}

// ErrNotInstalled means that no server program is installed. Its text says what
// to install.
var ErrNotInstalled = errors.New(`neither redis-server nor valkey-server is installed (or not in PATH), and a real one is needed. Install it and run again:
	Debian, Ubuntu   sudo apt-get install -y redis-server
	Fedora           sudo dnf install -y redis    (or valkey)
	Alpine           sudo apk add redis
	macOS            brew install redis`)

func findBinary() (string, error) {
	if name := os.Getenv(ServerVariable); name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("%s: %w", ServerVariable, err)
		}
		return path, nil
	}
	for _, name := range binaries {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNotInstalled
}
