package natsstore

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// Examination is what Examine found.
type Examination struct {
	// Node names the servers of the URL.
	Node string
	// Version is that of the server that is connected.
	Version string
	// Class is what a lock can require.
	Class store.Class
	// Replicas is how many servers keep the stream, and Behind names those that do not answer
	// or are behind.
	Replicas int
	Behind   []string
	// Unsynced names the servers that keep the stream and do not sync every write, as their
	// monitoring says, and Unseen those of which no monitoring port has told.
	Unsynced, Unseen []string
	// Took is how long a lock and its release took.
	Took time.Duration
	// Unusable is why no lock could be acquired there, or nil.
	Unusable error
}

// Examine opens the stream as Open does, and acquires and releases a lock with a name that nobody
// uses. It changes no other lock. It blocks for a few times Options.Timeout at most. The
// error is about the URL and the options; what is wrong with the servers is in the result.
func Examine(ctx context.Context, url string, o *Options) (Examination, error) {
	servers, c, err := parseURL(url, o)
	e := Examination{Node: strings.Join(servers, ",")}
	if err != nil {
		return e, err
	}
	bounded, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	d, err := connect(bounded, servers, c)
	if err != nil {
		e.Unusable = err
		return e, ctx.Err()
	}
	e.Version, e.Class, e.Replicas = d.conn.ConnectedServerVersion(), d.Describe().Class, d.replicas
	keepers := []string{d.conn.ConnectedServerName()}
	if info, err := d.stream.Info(bounded); err == nil && info.Cluster != nil && info.Cluster.Leader != "" {
		keepers = []string{info.Cluster.Leader}
		for _, p := range info.Cluster.Replicas {
			keepers = append(keepers, p.Name)
			if p.Offline || !p.Current {
				e.Behind = append(e.Behind, p.Name)
			}
		}
	}
	syncs := syncing(bounded, c.Monitors)
	for _, name := range keepers {
		if always, seen := syncs[name]; !seen {
			e.Unseen = append(e.Unseen, name)
		} else if !always {
			e.Unsynced = append(e.Unsynced, name)
		}
	}
	s := recordstore.New(d, &recordstore.Options{Timeout: c.Timeout})
	defer s.Close()
	began := time.Now()
	l := store.Lease{Name: "leasehold-doctor-" + store.NewOwner(), Owner: store.NewOwner(), TTL: c.Timeout}
	if _, e.Unusable = s.Acquire(ctx, store.AcquireRequest{Lease: l}); e.Unusable == nil {
		e.Unusable = s.Release(ctx, store.ReleaseRequest{Lease: l})
	}
	e.Took = time.Since(began)
	if errors.Is(e.Unusable, ctx.Err()) {
		return e, ctx.Err()
	}
	return e, nil
}

// syncing asks the monitoring ports of servers whether they sync every write. The result has the
// servers that have told, by their names.
func syncing(ctx context.Context, monitors []string) map[string]bool {
	told := map[string]bool{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, m := range monitors {
		wg.Go(func() {
			var v struct {
				Name      string `json:"server_name"`
				JetStream struct {
					Config struct {
						Always bool `json:"sync_always"`
					}
				}
			}
			if err := fetch(ctx, strings.TrimRight(m, "/")+"/varz", &v); err == nil && v.Name != "" {
				mu.Lock()
				defer mu.Unlock()
				told[v.Name] = v.JetStream.Config.Always
			}
		})
	}
	wg.Wait()
	return told
}

func fetch(ctx context.Context, url string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Second}
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(v)
}
