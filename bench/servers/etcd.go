package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/internal/testenv/port"
)

// StartEtcd starts one current etcd with its default settings: it writes every change to disk.
func StartEtcd(ctx context.Context) (*Server, error) {
	program, err := etcdtest.Current()
	if err != nil {
		return nil, err
	}
	client, err := port.Pick()
	if err != nil {
		return nil, err
	}
	peer, err := port.Pick()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bench-etcd-")
	if err != nil {
		return nil, err
	}
	url, peers := fmt.Sprintf("http://127.0.0.1:%d", client), fmt.Sprintf("http://127.0.0.1:%d", peer)
	var version struct {
		Server string `json:"etcdserver"`
	}
	s, err := start(ctx, dir, []string{program,
		"--data-dir", dir + "/data", "--name", "bench",
		"--listen-client-urls", url, "--advertise-client-urls", url,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "bench=" + peers,
	}, func(ctx context.Context) error {
		var health struct {
			Health string `json:"health"`
		}
		if err := get(ctx, url+"/health", &health); err != nil {
			return err
		}
		if health.Health != "true" {
			return fmt.Errorf("it reports its health as %q", health.Health)
		}
		return get(ctx, url+"/version", &version)
	})
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	s.Addr, s.Version = fmt.Sprintf("127.0.0.1:%d", client), version.Server
	s.requests = func(ctx context.Context) (uint64, error) { return etcdRequests(ctx, url) }
	return s, nil
}

func get(ctx context.Context, url string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return json.NewDecoder(answer.Body).Decode(into)
}
