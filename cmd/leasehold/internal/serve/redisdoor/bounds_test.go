package redisdoor

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// A connection for which there is no room is told so, and the others are served as before.
func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	address, _ := open(t, Options{Connections: 2})
	a, b := dial(t, address), dial(t, address)
	a.wants("PONG", "PING")
	b.wants("PONG", "PING")
	var others []*client
	for range 2 * mostRefused { // more than are told why at a time
		others = append(others, dial(t, address))
	}
	for _, c := range others {
		for !strings.HasPrefix(c.receive(), "closed") {
		}
		c.nc.Close()
	}
	a.wants("OK", "SET lock v NX PX 60000")
	a.nc.Close()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		c := dial(t, address)
		c.nc.Write([]byte(encode("PING"))) // is refused before that, maybe
		got := c.receive()
		if got == "PONG" {
			break
		}
		if !strings.HasPrefix(got, "closed") && !strings.HasPrefix(got, "(error) ERR max number of clients reached: this is leasehold serve --redis") {
			t.Errorf("got %s", got)
		}
		c.nc.Close()
		if time.Now().After(until) {
			t.Fatal("refused although a connection was closed")
		}
	}
	c := dial(t, address)
	if got := c.receive(); !strings.HasPrefix(got, "(error) ERR max number of clients reached: this is leasehold serve --redis") || !strings.Contains(got, " 2 connections") {
		t.Errorf("got %s", got)
	}
	if got := c.receive(); !strings.HasPrefix(got, "closed") {
		t.Errorf("got %s", got)
	}
}

// A client can send many commands before it reads the first reply.
func TestManyCommandsAtOnce(t *testing.T) {
	t.Parallel()
	for name, e := range engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := store.New(e)
			t.Cleanup(func() { st.Close() })
			address, _ := open(t, Options{Store: st})
			c := dial(t, address)
			const pairs = 50_000
			var b strings.Builder
			for i := range pairs {
				name := "lock" + strconv.Itoa(i%8)
				b.WriteString(encode("SET", name, "v", "NX", "PX", "60000") + encode("DELIFEQ", name, "v"))
			}
			c.nc.SetWriteDeadline(time.Now().Add(time.Minute))
			c.send(b.String())
			for i := range pairs {
				if set, del := c.receive(), c.receive(); set != "OK" || del != "(integer) 1" {
					t.Fatalf("%d: %s, %s", i, set, del)
				}
			}
		})
	}
}

// heap returns the bytes that are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// Clients that never read their replies, and clients that send far too much, make the server keep
// little.
func TestMemoryIsBounded(t *testing.T) {
	const many = 20
	for name, raw := range map[string]string{
		"replies are not read": strings.Repeat(encode("GET", "lock"), 1000),
		"long bodies":          strings.Repeat("x", 1<<20),
	} {
		for engine, e := range engines() {
			t.Run(name+", "+engine, func(t *testing.T) {
				st := store.New(e)
				t.Cleanup(func() { st.Close() })
				address, _ := open(t, Options{Store: st, Patience: time.Minute})
				dial(t, address).wants("OK", "SET", "lock", strings.Repeat("v", 200), "NX", "PX", "600000")
				before := heap()
				var ended sync.WaitGroup
				for range many {
					c := dial(t, address)
					if name == "long bodies" {
						c.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$67108864\r\n")
					}
					ended.Go(func() {
						for range 2000 { // until the server reads no more
							c.nc.SetWriteDeadline(time.Now().Add(time.Second))
							if _, err := io.WriteString(c.nc, raw); err != nil {
								return
							}
						}
					})
				}
				ended.Wait()
				if each := (heap() - before) / many; each > 1_000_000 { // often 80 KB, and on a busy machine up to 350 KB; without bounds: 13 MB
					t.Errorf("a connection takes %d bytes", each)
				} else {
					t.Logf("a connection takes %d bytes", each)
				}
			})
		}
	}
}

// idleVar makes the test program the server of TestManyIdleConnections.
const idleVar = "LEASEHOLD_TEST_IDLE"

func serveIdle() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	st := memstore.New(nil)
	defer st.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		fmt.Println(l.Addr())
		err = New(Options{Store: st}).Serve(ctx, l, time.Second)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
