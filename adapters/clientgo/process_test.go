package clientgo_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/clientgo"
	"github.com/leasehold-dev/leasehold/internal/testenv/adaptertest"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// roleVar makes the test binary lead on the Redis server that it names.
const roleVar = "LEASEHOLD_CLIENTGO_LEADS_ON"

func TestMain(m *testing.M) {
	if url := os.Getenv(roleVar); url != "" {
		err := lead(url, "child", func(token leasehold.Token) {
			fmt.Println(uint64(token))
			io.Copy(io.Discard, os.Stdin) // until it is killed
		})
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) // those that client-go starts when it is imported
}

// lead contends for an election on Redis, and leads until started returns.
func lead(url, name string, started func(leasehold.Token)) error {
	st, err := redisstore.Open(context.Background(), url, nil)
	if err != nil {
		return err
	}
	defer st.Close()
	lock, err := clientgo.New(leasehold.New(st, nil), "controller", &clientgo.Options{
		Identity: name, LeaseDuration: 5 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 100 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{})) // without a log
	done := make(chan struct{})
	config := lock.Config()
	config.ReleaseOnCancel = true
	config.Callbacks = leaderelection.LeaderCallbacks{
		OnStartedLeading: func(context.Context) {
			defer close(done)
			started(lock.Token())
			cancel()
		},
		OnStoppedLeading: func() {},
	}
	leaderelection.RunOrDie(ctx, config)
	<-done
	return nil
}

// When the process of the leader is killed, another candidate leads after the TTL, with a
// larger token.
func TestLeaderIsKilled(t *testing.T) {
	url := "redis://" + redistest.Start(t).Addr()
	leader := adaptertest.Again(t, roleVar+"="+url)
	var first leasehold.Token
	if _, err := fmt.Fscan(leader.Out, &first); err != nil {
		t.Fatal(err)
	}

	var second leasehold.Token
	killed := time.Now()
	leader.Kill()
	if err := lead(url, "parent", func(token leasehold.Token) { second = token }); err != nil {
		t.Fatal(err)
	}
	t.Logf("the second leads with token %v after %v", second, time.Since(killed))
	if second <= first {
		t.Errorf("the second leader has token %v after token %v, want a larger one", second, first)
	}
}
