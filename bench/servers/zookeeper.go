package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/testenv/port"
	"github.com/leasehold-dev/leasehold/internal/testenv/zktest"
)

var errNoZooKeeper = &MissingError{"ZooKeeper", `run scripts/ensure-zookeeper.sh, or on Debian and Ubuntu "sudo apt-get install -y zookeeper default-jre-headless"`}

// StartZooKeeper starts one ZooKeeper with its default settings: it writes every change
// to disk.
func StartZooKeeper(ctx context.Context) (*Server, error) {
	java, jar, err := zktest.Program()
	if err != nil {
		return nil, errNoZooKeeper
	}
	free, err := port.Pick()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bench-zookeeper-")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "zoo.cfg")
	settings := fmt.Sprintf("tickTime=2000\ndataDir=%s/data\nclientPort=%d\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\n", dir, free)
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", free)
	version := ""
	s, err := start(ctx, dir, []string{java, "-cp", jar, zktest.Main, config}, func(context.Context) (err error) {
		version, err = zookeeperVersion(addr)
		return err
	})
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	s.Addr, s.Version = addr, version
	s.requests = func(context.Context) (uint64, error) { return zookeeperRequests(addr) }
	return s, nil
}

// zookeeperVersion asks the server, which answers when it is ready.
func zookeeperVersion(addr string) (string, error) {
	text, err := zookeeperSays(addr)
	if err != nil {
		return "", err
	}
	_, after, ok := strings.Cut(text, "Zookeeper version: ")
	if !ok {
		return "", errors.New("it does not serve yet: " + text)
	}
	version, _, _ := strings.Cut(after, "-")
	return version, nil
}
