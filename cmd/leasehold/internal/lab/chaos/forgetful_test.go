package chaos

import (
	"context"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lab/torture"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Every server in turn is killed and comes back without its data, and then all
// are emptied at once, while processes contend for the locks: no two hold a lock
// together, and tokens do not decrease.
func TestServersThatForget(t *testing.T) {
	t.Parallel()
	c := Start(t, nodes)
	const ttl = time.Second
	where := settings(ttl)
	where.Set("max_ttl", ttl.String())
	const spread = 2700 * time.Millisecond // two of five at most are in quarantine, which lasts 5 s
	wiped := false
	report, printed := run(t, torture.Config{
		Procs: 3, Locks: torture.Names(2), TTL: ttl, For: (nodes + 3) * spread,
		Store: []string{c.URL(where)}, Command: workers(t, "shipped"),
		Disturb: func(ctx context.Context, note func(on, what string) func()) {
			for _, n := range c.Nodes {
				over := note("node "+n.Server.Addr(), "killed, and started again without its data")
				n.Server.Kill()
				n.Server.Restart() // an error of it is reported by the test helper
				over()
				if !clock.Sleep(ctx, spread) {
					return
				}
			}
			over := note("all nodes", "emptied")
			for _, n := range c.Nodes {
				if _, err := n.Server.Do(ctx, "FLUSHALL"); err != nil {
					t.Error(err)
				}
			}
			wiped = true
			over()
		},
	})
	t.Log(printed)
	if !report.OK() {
		t.Error("the report has violations, want none: see above")
	}
	if !wiped || report.Granted < 20 || report.Lost == 0 {
		t.Errorf("emptied: %v, %d grants, %d lost; want it emptied, 20 grants and a loss at least", wiped, report.Granted, report.Lost)
	}
}
