package etcdtest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Current returns a current etcd. It builds it from its module (about 80 seconds of
// processor time with an empty build cache), and keeps it in the user's cache directory.
func Current() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", fmt.Errorf("etcdtest: cannot find the directory of this source file, to build etcd from")
	}
	source := filepath.Join(filepath.Dir(file), "server")
	sums, err := os.ReadFile(filepath.Join(source, "go.sum"))
	if err != nil {
		return "", fmt.Errorf("etcdtest: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("etcdtest: %w", err)
	}
	dir := filepath.Join(cache, "leasehold-test")
	program := filepath.Join(dir, fmt.Sprintf("etcd-%x-%s", sha256.Sum256(sums), runtime.Version()))
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("etcdtest: %w", err)
	}
	// If another process builds it at the same time, the last one replaces the program.
	own, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return "", fmt.Errorf("etcdtest: %w", err)
	}
	defer os.RemoveAll(own)
	built := filepath.Join(own, "etcd")
	cmd := exec.Command("go", "build", "-o", built, ".")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("etcdtest: cannot build etcd: %w\n%s", err, out)
	}
	if err := os.Rename(built, program); err != nil {
		return "", fmt.Errorf("etcdtest: %w", err)
	}
	return program, nil
}
