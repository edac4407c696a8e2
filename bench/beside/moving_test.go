package beside

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	pool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis "github.com/redis/go-redis/v9"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// chargeFunc is the work of the examples.
type chargeFunc func(ctx context.Context, id string) error

// clients connects to n servers, with the driver of the other libraries and with Leasehold.
func clients(t *testing.T, n int) ([]*goredis.Client, *leasehold.Client) {
	t.Helper()
	var addrs []string
	var drivers []*goredis.Client
	for _, s := range redistest.StartN(t, n) {
		d := goredis.NewClient(&goredis.Options{Addr: s.Addr()})
		t.Cleanup(func() { d.Close() })
		addrs, drivers = append(addrs, s.Addr()), append(drivers, d)
	}
	st, client, err := locks.Leasehold(t.Context(), addrs, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return drivers, client
}

// way is one side of the difference: how a program charges an invoice.
type way func(ctx context.Context, id string, charge chargeFunc) error

// exclude checks that a program that has moved and one that has not exclude each other,
// whichever of them has the lock. The error of the one that does not get it matches busy.
func exclude(t *testing.T, before, after way, busy func(error) bool) {
	t.Helper()
	for _, c := range []struct {
		name         string
		holds, wants way
	}{{"before, after", before, after}, {"after, before", after, before}} {
		t.Run(c.name, func(t *testing.T) {
			charged := 0
			count := func(context.Context, string) error { charged++; return nil }
			err := c.holds(t.Context(), "42", func(ctx context.Context, id string) error {
				brief, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
				if err := c.wants(brief, id, count); !busy(err) || charged != 0 {
					t.Errorf("while the lock is held: %v, charged %d times, want the error of a held lock and no charge", err, charged)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			if err := c.wants(t.Context(), "42", count); err != nil || charged != 1 {
				t.Errorf("when the lock is free: %v, charged %d times, want once", err, charged)
			}
		})
	}
}

// TestMovingFromRedsync runs both sides of docs/moving/redsync.md on the same servers.
func TestMovingFromRedsync(t *testing.T) {
	drivers, client := clients(t, 3)
	var pools []redis.Pool
	for _, d := range drivers {
		pools = append(pools, pool.NewPool(d))
	}
	rs := redsync.New(pools...)
	before := func(ctx context.Context, id string, charge chargeFunc) error {
		return chargeByRedsync(ctx, rs, id, charge)
	}
	after := func(ctx context.Context, id string, charge chargeFunc) error {
		return chargeInsteadOfRedsync(ctx, client, id, charge)
	}
	exclude(t, before, after, func(err error) bool {
		return errors.Is(err, leasehold.ErrBusy) || errors.Is(err, redsync.ErrFailed)
	})
}

// TestMovingFromRedislock runs both sides of docs/moving/redislock.md on the same server.
func TestMovingFromRedislock(t *testing.T) {
	drivers, client := clients(t, 1)
	locker := redislock.New(drivers[0])
	before := func(ctx context.Context, id string, charge chargeFunc) error {
		return chargeByRedislock(ctx, locker, id, charge)
	}
	after := func(ctx context.Context, id string, charge chargeFunc) error {
		return chargeInsteadOfRedislock(ctx, client, id, charge)
	}
	exclude(t, before, after, func(err error) bool { return errors.Is(err, errInUse) })
}

// TestMovingPagesShowThisCode checks that the differences that the pages show are between
// the functions that are run here.
func TestMovingPagesShowThisCode(t *testing.T) {
	for _, library := range []string{"redsync", "redislock"} {
		page, err := os.ReadFile("../../docs/moving/" + library + ".md")
		if err != nil {
			t.Fatal(err)
		}
		source, err := os.ReadFile("moving_" + library + "_test.go")
		if err != nil {
			t.Fatal(err)
		}
		blocks := regexp.MustCompile("(?s)```diff\n(.*?)```").FindAllSubmatch(page, -1)
		if len(blocks) != 1 {
			t.Fatalf("%d differences in docs/moving/%s.md, want 1", len(blocks), library)
		}
		var before, after strings.Builder
		for line := range strings.Lines(string(blocks[0][1])) {
			code := "\t" + line[1:]
			if line[0] != '+' {
				before.WriteString(code)
			}
			if line[0] != '-' {
				after.WriteString(code)
			}
		}
		for side, code := range map[string]string{"before": before.String(), "after": after.String()} {
			if !strings.Contains(string(source), "error {\n"+code+"}\n") {
				t.Errorf("docs/moving/%[2]s.md shows this function %[3]s the move, want one of moving_%[1]s_test.go:\n%[4]s", library, library, side, code)
			}
		}
	}
}
