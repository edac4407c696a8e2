package beside

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/port"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/remotestore"
)

const (
	// floorVar makes the test program a server that answers what a server of locks answers.
	floorVar = "LEASEHOLD_BENCH_FLOOR"
	// dflockdVar has the path of the program dflockd. Its module cannot be fetched everywhere.
	dflockdVar = "DFLOCKD"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(floorVar); address != "" {
		fmt.Fprintln(os.Stderr, http.ListenAndServe(address, http.HandlerFunc(answerAtOnce)))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// granted is as long as an answer to acquire.
var granted = httpapi.Grant{LockName: statejson.NameOf("bench/12"), Owner: "0123456789abcdefghijklmnopq", Token: 1764384000123456, Valid: 29698}

// answerAtOnce is the least that a server of locks over HTTP does: it reads a body, and answers.
func answerAtOnce(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/v1/store":
		json.NewEncoder(w).Encode(httpapi.CapsOf(memstore.New(nil)))
	case r.URL.Path == "/v1/batch":
		var lines []byte
		n := 0
		for ask := range bytes.Lines(body) {
			reply := httpapi.Reply{Line: n}
			if bytes.Contains(ask, []byte(`"acquire"`)) {
				reply.Grant = &granted
			}
			lines = reply.AppendLine(lines)
			n++
		}
		w.Write(lines)
	case strings.HasSuffix(r.URL.Path, "/release"):
		w.WriteHeader(http.StatusNoContent)
	default:
		json.NewEncoder(w).Encode(granted)
	}
}

// launch starts a server that listens at an address of its own, and returns the address once it
// answers.
func launch(tb testing.TB, command func(address string) *exec.Cmd) string {
	tb.Helper()
	n, err := port.Pick()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { port.Release(n) })
	address := "127.0.0.1:" + strconv.Itoa(n)
	cmd := command(address)
	said := &strings.Builder{}
	cmd.Stderr = said
	p, err := child.Start(cmd)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Kill)
	for {
		if nc, err := net.Dial("tcp", address); err == nil {
			nc.Close()
			return address
		}
		select {
		case <-p.Done():
			tb.Fatalf("the server ended: %v: %s", p.Err(), said)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func serves(tb testing.TB, binary, storeURL string) string {
	return launch(tb, func(address string) *exec.Cmd {
		return exec.Command(binary, "serve", "--store", storeURL, "--listen", address)
	})
}

func overHTTP(tb testing.TB, address string) *store.Store {
	tb.Helper()
	st, err := remotestore.Open(tb.Context(), "http://"+address, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { st.Close() })
	return st
}

func overRedis(tb testing.TB, address string) *store.Store {
	tb.Helper()
	st, err := redisstore.Open(tb.Context(), "redis://"+address+"?node_timeout=5s", nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { st.Close() })
	return st
}

// pairs has 64 goroutines acquire and release a lock of their own.
func pairs(b *testing.B, open func() (pair func(name string) error)) {
	b.Helper()
	const goroutines = 64
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	each := make([]func(string) error, goroutines)
	for i := range each { // which also opens the connections
		each[i] = open()
	}
	round := func(more func() bool) {
		for i, pair := range each {
			name := fmt.Sprintf("bench/%d", i)
			all.Go(func() {
				for more() {
					if err := pair(name); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
	}
	var warm atomic.Int64
	round(func() bool { return warm.Add(1) <= 2*goroutines })
	b.ResetTimer()
	used := cpu()
	round(func() bool { return left.Add(-1) >= 0 })
	b.StopTimer()
	b.ReportMetric(float64((cpu()-used).Microseconds())/float64(b.N), "cpu-us/op")
}

// described is the holder, as a client describes itself.
var described = store.Holder{Host: "worker-12", PID: 4711, Purpose: "nightly"}.Encode()

func ofStore(st *store.Store) func() func(string) error {
	return func() func(string) error {
		return func(name string) error {
			l := store.Lease{Name: name, Owner: store.NewOwner(), TTL: 30 * time.Second, Meta: described}
			if _, err := st.Acquire(context.Background(), store.AcquireRequest{Lease: l}); err != nil {
				return err
			}
			return st.Release(context.Background(), store.ReleaseRequest{Lease: l})
		}
	}
}

// BenchmarkServe measures acquire and release with 64 goroutines: of a store used directly, and of
// the same store behind "leasehold serve", with goroutines that share a store and so requests, or
// that have one each ("apart"); of a server that keeps nothing and answers fixed texts ("floor"), which
// is what the client and HTTP themselves cost; and of dflockd in its own protocol, if DFLOCKD names the program. Run it with
// -benchtime 2s -count 5, and compare medians. On a machine that is busy otherwise, compare the
// processor time of all processes, cpu-us/op.
func BenchmarkServe(b *testing.B) {
	binary := build(b)
	redis := redistest.Start(b).Addr()
	memory := memstore.New(nil)
	b.Cleanup(func() { memory.Close() })
	b.Run("memory/direct", func(b *testing.B) { pairs(b, ofStore(memory)) })
	b.Run("redis/direct", func(b *testing.B) { pairs(b, ofStore(overRedis(b, redis))) })
	servers := map[string]func(b *testing.B) (address string){
		"memory": func(b *testing.B) string { return serves(b, binary, "memory:") },
		"redis":  func(b *testing.B) string { return serves(b, binary, "redis://"+redis+"?node_timeout=5s") },
		"floor": func(b *testing.B) string {
			return launch(b, func(address string) *exec.Cmd {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), floorVar+"="+address)
				return cmd
			})
		},
	}
	for name, server := range servers {
		b.Run(name+"/http", func(b *testing.B) { pairs(b, ofStore(overHTTP(b, server(b)))) })
		b.Run(name+"/apart", func(b *testing.B) {
			address := server(b)
			pairs(b, func() func(string) error { return ofStore(overHTTP(b, address))() })
		})
	}
	b.Run("dflockd", func(b *testing.B) {
		address := dflockd(b)
		pairs(b, func() func(string) error { return ofDflockd(b, address) })
	})
}

func dflockd(tb testing.TB) string {
	binary := os.Getenv(dflockdVar)
	if binary == "" {
		tb.Skip("the variable " + dflockdVar + " names no dflockd")
	}
	return launch(tb, func(address string) *exec.Cmd {
		_, port, _ := net.SplitHostPort(address)
		return exec.Command(binary, "--port", port)
	})
}

// ofDflockd uses a connection of its own, as dflockd's client does.
func ofDflockd(tb testing.TB, address string) func(string) error {
	nc, err := net.Dial("tcp", address)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { nc.Close() })
	r := bufio.NewReader(nc)
	return func(name string) error {
		fmt.Fprintf(nc, "l\n%s\n10 30\n", name)
		answer, err := r.ReadString('\n')
		words := strings.Fields(answer)
		if err != nil || len(words) < 2 || words[0] != "ok" {
			return fmt.Errorf("acquire: %q, %w", answer, err)
		}
		fmt.Fprintf(nc, "r\n%s\n%s\n", name, words[1])
		if answer, err = r.ReadString('\n'); answer != "ok\n" {
			return fmt.Errorf("release: %q, %w", answer, err)
		}
		return nil
	}
}

// BenchmarkServeHandOff measures the time from a release to the grant of a waiter, in round trips
// to a server that is far away: directly, over HTTP, and for holds, where closing the connection
// releases. The store is as far from the server of HTTP as that is from its clients.
func BenchmarkServeHandOff(b *testing.B) {
	const roundTrip = 20 * time.Millisecond
	far := func(address string) string {
		p, err := faultproxy.Listen(address)
		if err != nil {
			b.Fatal(err)
		}
		p.Delay(roundTrip / 2)
		b.Cleanup(p.Close)
		return p.Addr()
	}
	binary := build(b)
	redis := far(redistest.Start(b).Addr())
	server := far(serves(b, binary, "redis://"+redis+"?node_timeout=5s"))
	report := func(b *testing.B, took []time.Duration) {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2])/float64(roundTrip), "roundtrips")
		b.ReportMetric(0, "ns/op")
	}
	stores := func(open func(testing.TB) *store.Store) func(b *testing.B) {
		return func(b *testing.B) {
			one, other := open(b), open(b)
			var took []time.Duration
			for range max(b.N, 5) {
				took = append(took, handOff(b, one, other))
			}
			report(b, took)
		}
	}
	b.Run("direct", stores(func(tb testing.TB) *store.Store { return overRedis(tb, redis) }))
	b.Run("http", stores(func(tb testing.TB) *store.Store { return overHTTP(tb, server) }))
	b.Run("hold", func(b *testing.B) {
		var took []time.Duration
		for range max(b.N, 5) {
			first := holds(b, server)
			first.until("held")
			second := holds(b, server)
			second.until("waiting")
			begin := time.Now()
			first.close()
			second.until("held")
			took = append(took, time.Since(begin))
			second.close()
		}
		report(b, took)
	})
}

// handOff returns how long a waiter of other waits once one releases the lock.
func handOff(tb testing.TB, one, other *store.Store) time.Duration {
	tb.Helper()
	held := store.Lease{Name: "stock", Owner: store.NewOwner(), TTL: 30 * time.Second}
	if _, err := one.Wait(tb.Context(), store.WaitRequest{Lease: held}, nil); err != nil {
		tb.Fatal(err)
	}
	waiting := make(chan struct{})
	granted := make(chan time.Time, 1)
	next := held
	next.Owner = store.NewOwner()
	go func() {
		var once sync.Once
		_, err := other.Wait(context.Background(), store.WaitRequest{Lease: next}, func(error) { once.Do(func() { close(waiting) }) })
		if granted <- time.Now(); err != nil {
			tb.Error(err)
		}
	}()
	<-waiting
	begin := time.Now()
	if err := one.Release(tb.Context(), store.ReleaseRequest{Lease: held}); err != nil {
		tb.Fatal(err)
	}
	took := (<-granted).Sub(begin)
	if err := other.Release(tb.Context(), store.ReleaseRequest{Lease: next}); err != nil {
		tb.Fatal(err)
	}
	return took
}

// hold is the connection of a hold.
type hold struct {
	tb    testing.TB
	body  io.ReadCloser
	lines *bufio.Scanner
	close func()
}

func holds(tb testing.TB, address string) *hold {
	tb.Helper()
	t := &http.Transport{}
	ctx, stop := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/locks/held/hold", nil)
	if err != nil {
		tb.Fatal(err)
	}
	resp, err := t.RoundTrip(r)
	if err != nil {
		tb.Fatal(err)
	}
	return &hold{tb, resp.Body, bufio.NewScanner(resp.Body), func() { stop(); resp.Body.Close(); t.CloseIdleConnections() }}
}

// until reads lines until one is about the event.
func (h *hold) until(event string) {
	h.tb.Helper()
	for h.lines.Scan() {
		if strings.HasPrefix(h.lines.Text(), `{"event":"`+event+`"`) {
			return
		}
	}
	h.tb.Fatalf("the hold ended before it was %s: %v", event, h.lines.Err())
}
