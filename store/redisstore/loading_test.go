package redisstore_test

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// A server that is reading its append-only file reports that it has none. A client that
// connects just before the end does not take that for a lack of durability, which would
// put the server into quarantine.
func TestDurableServerIsLoading(t *testing.T) {
	t.Parallel() // it mostly waits
	// Some seconds of loading, in which it answers now and then.
	servers := redistest.StartN(t, 3, "--appendonly", "yes", "--appendfsync", "always", "--key-load-delay", "300")
	server := servers[0]
	server.Text(t, "EVAL", "for i = 1, 20000 do redis.call('SET', 'key' .. i, i) end", "0")
	server.Kill()
	if err := server.RestartLoading(); err != nil {
		t.Fatal(err)
	}
	p := faultproxy.New(t, server.Addr())
	p.HoldReplies()
	c := open(t, []string{p.Addr(), servers[1].Addr(), servers[2].Addr()}, nil)
	p.Await(t, "the server has sent its reply", func(s faultproxy.Stats) bool { return s.Replies.Held() > 1000 })
	server.Text(t, "CONFIG", "SET", "key-load-delay", "0")
	eventually.True(t, "the server has loaded", func() bool {
		return strings.Contains(server.Text(t, "INFO", "persistence"), "\nloading:0")
	})
	p.Pass()
	run := ""
	for l := range strings.Lines(server.Text(t, "INFO", "server")) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(l), "run_id:"); ok {
			run = id
		}
	}
	var mark nodemark.Mark
	eventually.True(t, "the client has connected", func() bool {
		uses(t, c) // which makes it connect
		var err error
		if mark, err = nodemark.Parse(server.Text(t, "GET", redistest.Mark)); err != nil {
			t.Fatal(err)
		}
		return mark.Run == run
	})
	if !mark.Open || mark.Durable == 0 {
		t.Errorf("the mark of a server that has lost nothing is %v, want it open and durable", mark)
	}
}
