package node

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// timeServer answers TIME by a clock that can be set, and counts the requests.
type timeServer struct {
	ahead atomic.Int64
	asked atomic.Int64
}

func (s *timeServer) serve(c net.Conn) {
	in := resp.NewReader(c)
	for {
		v, err := in.Next() // a command is written as a reply is
		if err != nil {
			return
		}
		if len(v.List) != 1 || string(v.List[0].Text) != "TIME" {
			fmt.Fprint(c, "-ERR not understood\r\n")
			continue
		}
		s.asked.Add(1)
		us := time.Now().UnixMicro() + time.Duration(s.ahead.Load()).Microseconds()
		sec, rest := fmt.Sprint(us/1e6), fmt.Sprint(us%1e6)
		w := bufio.NewWriter(c)
		fmt.Fprintf(w, "*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(sec), sec, len(rest), rest)
		w.Flush()
	}
}

// A client that asks for nothing for an hour sees a jump of a server's clock within
// half of the longest TTL, and asks for the time no more often than that.
func TestIdleConnectionReadsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, err := config.Config{MaxTTL: time.Minute, Logger: slog.New(slog.DiscardHandler)}.WithDefaults()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		o.Clock = clock.Func(func() clock.Instant { return clock.Instant(time.Hour + time.Since(began)) })
		s := bareStore(o)
		s.Size = 1
		s.Driver.Clocks = driver.NewClocks(1, func(clock.Instant) time.Duration { return o.Quarantine() }, nil, o.Logger)
		n := New(0, config.Address{Host: "n"}, s)
		near, far := net.Pipe()
		var server timeServer
		go server.serve(far)
		w := sessionOver(n, near)
		n.Mu.Lock()
		n.UseLocked(&w.Pipe, time.Now())
		n.Mu.Unlock()
		defer far.Close()
		defer n.Shut()

		time.Sleep(51 * time.Minute)
		synctest.Wait()
		if asked := server.asked.Load(); asked < 101 || asked > 102 {
			t.Errorf("in 51 minutes the server was asked for the time %d times, want once in 30 seconds", asked)
		}
		server.ahead.Store(int64(30 * time.Second))
		time.Sleep(o.MaxTTL / 2)
		synctest.Wait()
		now := o.Clock.Now()
		grant := clock.Instant(time.Now().Add(30 * time.Second).UnixNano())
		if s.Driver.Clocks.Observe(0, "n", now, now, grant) == nil {
			t.Error("a jump of 30 seconds after 51 idle minutes was not seen")
		}
	})
}
