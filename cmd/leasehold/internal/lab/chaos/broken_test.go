package chaos

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lab/history"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lab/torture"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// naive is the usual first attempt at a lock: SET NX PX, and DEL when done, although the
// lock may have another holder by then.
type naive struct {
	store.Engine // the rest is not used
	c            rueidis.Client
}

func openNaive(ctx context.Context, urls []string) (*store.Store, error) {
	o, err := rueidis.ParseURL(urls[0])
	if err != nil {
		return nil, err
	}
	o.DisableCache = true
	c, err := rueidis.NewClient(o)
	if err != nil {
		return nil, err
	}
	return store.New(&naive{c: c}), nil
}

func (n *naive) Caps() store.Caps {
	return store.Caps{Engine: "redis", Nodes: 1, Quorum: 1, Reach: "network", Clock: "the server's own", MutexesOnly: true, NoQueue: true, NoBreaks: true}
}

func (n *naive) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	err := n.c.Do(ctx, n.c.B().Set().Key(r.Name).Value(r.Owner).Nx().Px(r.TTL).Build()).Error()
	if rueidis.IsRedisNil(err) {
		return store.Grant{}, &store.BusyError{Name: r.Name, ExpiresIn: r.TTL}
	}
	if err != nil {
		return store.Grant{}, fmt.Errorf("%w: %w", store.ErrAmbiguous, err)
	}
	token, err := n.c.Do(ctx, n.c.B().Incr().Key(r.Name+":token").Build()).AsUint64()
	return store.Grant{Token: fence.Token(token)}, err
}

// Renew does nothing: the usual first attempt does not renew, either.
func (n *naive) Renew(_ context.Context, leases []store.Lease) []error {
	errs := make([]error, len(leases))
	for i := range errs {
		errs[i] = store.ErrUnsupported
	}
	return errs
}

func (n *naive) Release(ctx context.Context, r store.ReleaseRequest) error {
	return n.c.Do(ctx, n.c.B().Del().Key(r.Name).Build()).Error()
}

func (n *naive) Close() error {
	n.c.Close()
	return nil
}

// A holder that releases too late, because it was stopped or slow, deletes the lock of the
// present holder, and a third client takes it. The judge must find that.
func TestNaiveLockFails(t *testing.T) {
	t.Parallel()
	c := Start(t, 1)
	mustFail(t, torture.Config{
		Procs: 2, Goroutines: 6, Locks: torture.Names(3), TTL: 200 * time.Millisecond, For: 4 * time.Second,
		Store: []string{"redis://" + c.Nodes[0].Server.Addr()}, Command: workers(t, "naive"),
	})
}

// Clients that disagree on which servers keep the locks do not exclude each other. The judge
// must find that, too.
func TestDifferentServersFail(t *testing.T) {
	t.Parallel()
	c := Start(t, 4)
	const ttl = 500 * time.Millisecond
	mine, yours := workers(t, "shipped"), 0
	mustFail(t, torture.Config{
		Procs: 4, Locks: torture.Names(1), TTL: ttl, For: 2 * time.Second,
		Store: []string{c.URL(settings(ttl))},
		Command: func() *exec.Cmd {
			w := mine()
			yours++
			w.Env = append(w.Env, onlyServers+"="+c.URL(settings(ttl), yours%2, 2+yours%2))
			return w
		},
	})
}

// mustFail runs a set-up that is wrong, and fails the test if it is not caught.
// Which holder is stopped when is up to chance, so it gets some tries.
func mustFail(t *testing.T, c torture.Config) {
	t.Helper()
	for c.Seed = 1; c.Seed <= 8; c.Seed++ {
		report, printed := run(t, c)
		for _, check := range []string{"mutual exclusion", "lock model"} {
			found := slices.ContainsFunc(report.Violations, func(v history.Violation) bool { return v.Check == check })
			if found && len(report.Pictures) > 0 && !report.OK() {
				t.Log(printed)
				return
			}
		}
	}
	t.Error("no violations in eight runs of a lock that does not exclude, want some of mutual exclusion and of the lock model, with a picture")
}
