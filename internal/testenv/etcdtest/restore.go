package etcdtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Etcdctl runs the command of the system's packages against the member, and returns what
// it printed.
func (m *Member) Etcdctl(args ...string) (string, error) {
	program, err := exec.LookPath("etcdctl")
	if err != nil {
		return "", fmt.Errorf("etcdctl is not installed: on Debian and Ubuntu, sudo apt-get install -y etcd-client")
	}
	cmd := exec.Command(program, append([]string{"--endpoints=" + m.Addr}, args...)...)
	cmd.Env = append(os.Environ(), "ETCDCTL_API=3")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("etcdctl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// Snapshot makes a backup of the member.
func (m *Member) Snapshot() (file string, err error) {
	file = filepath.Join(filepath.Dir(m.log), m.name+".snapshot")
	_, err = m.Etcdctl("snapshot", "save", file)
	return file, err
}

// Restore replaces the data of a cluster of one member by a backup, as an operator does, and
// restarts the member.
func (m *Member) Restore(snapshot string) error {
	m.Kill()
	args := []string{"snapshot", "restore", snapshot}
	for _, a := range m.args {
		name, value, _ := strings.Cut(a, "=")
		switch name {
		case "--data-dir":
			if err := os.RemoveAll(value); err != nil {
				return err
			}
			args = append(args, a)
		case "--name", "--initial-cluster", "--initial-cluster-token", "--initial-advertise-peer-urls":
			args = append(args, a)
		}
	}
	if _, err := m.Etcdctl(args...); err != nil {
		return err
	}
	return m.Restart()
}
