package chaos

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lab/torture"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// Settings of a longer run than the tests': see make torture.
var (
	faultsFor = flag.Duration("for", 7*time.Second, "how long TestTorture makes faults")
	seed      = flag.Uint64("seed", 0, "seed of the faults; 0: another each time")
	procs     = flag.Int("procs", 4, "processes that take locks")
	ttl       = flag.Duration("ttl", time.Second, "TTL of the locks of TestTorture; a lock that is left behind is held for as long")
	crowd     = flag.Int("crowd", 200, "waiters of TestTortureCrowd that give up together; a twentieth as many readers hold a lock together")
	blinks    = flag.Bool("blinks", false, "TestTorture only makes one server at a time unreachable for a moment")
	idle      = flag.Duration("idle", 0, "how long a waiter may wait for a free lock while TestTorture makes faults; 0: that is not judged, since a machine that runs other tests may be slower than any bound")
	out       = flag.String("out", "", "where TestTorture leaves the history, an empty or new directory; else it is kept only on failure")
)

// verdict is that of TestTorture. It is printed last.
var verdict string

// asWorker is set in a worker process of this test program, to its kind of store.
const asWorker = "LEASEHOLD_CHAOS_WORKER"

func TestMain(m *testing.M) {
	if kind := os.Getenv(asWorker); kind != "" {
		if err := torture.Work(os.Stdin, opens[kind]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Println("leaked goroutines:", err)
			code = 1
		}
	}
	if verdict != "" {
		fmt.Println("torture:", verdict)
	}
	os.Exit(code)
}

// opens are the kinds of stores that workers use.
var opens = map[string]torture.Open{
	"shipped": func(ctx context.Context, urls []string) (*store.Store, error) {
		if only := os.Getenv(onlyServers); only != "" {
			urls = []string{only}
		}
		return redisstore.Open(ctx, strings.Join(urls, "\n"), nil)
	},
	"naive": openNaive,
}

// onlyServers gives a worker other servers than the others have.
const onlyServers = "LEASEHOLD_CHAOS_SERVERS"
