package serve_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/filestore"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// storeVar has the URL of the store of a test program that is a server.
const storeVar = "LEASEHOLD_TEST_SERVE"

// serveAsChild serves the store of url until a signal ends it, as the command does.
func serveAsChild(url string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	st := memstore.New(nil)
	var err error
	if dir, ok := strings.CutPrefix(url, "file:"); ok {
		st, err = filestore.Open(ctx, "file:"+dir, &filestore.Options{Lasting: true})
	}
	if err != nil {
		return err
	}
	defer st.Close()
	s := serve.New(serve.Options{Store: st})
	at := serve.Listening{Address: "127.0.0.1:0", Drain: 10 * time.Second}
	l, err := s.Listen(at)
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return s.Serve(ctx, l, at)
}

// server is a server in a process of its own.
type server struct {
	*child.Process
	url string
}

func startProcess(t *testing.T, storeURL string) *server {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), storeVar+"="+storeURL)
	cmd.Stderr = os.Stderr
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	p, err := child.Start(cmd)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return &server{p, "http://" + strings.TrimSpace(line)}
}

// resource is what a lock protects: at most one holder at a time, whose token is the largest.
type resource struct {
	inside  atomic.Int32
	highest atomic.Uint64
}

func (r *resource) enter(t *testing.T, token fence.Token) {
	if r.inside.Add(1) != 1 {
		t.Error("two holders at a time")
	}
	if last := r.highest.Swap(uint64(token)); last > uint64(token) {
		t.Errorf("token %d after %d", token, last)
	}
}

// 200 holders and 200 waiters of 200 locks outlive the end of the server that they use, however
// it ends: nobody loses a lease, no two hold a lock, and each waiter gets its lock.
func testServerEnds(t *testing.T, end syscall.Signal) {
	const locks = 200
	dir := "file:" + t.TempDir()
	a, b := startProcess(t, dir), startProcess(t, dir)
	urls := a.url + "," + strings.TrimPrefix(b.url, "http://")
	holders, waiters := leasehold.New(remote(t, urls, nil), nil), leasehold.New(remote(t, urls, nil), nil)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	var resources [locks]resource
	lock := func(c *leasehold.Client, i int) *leasehold.Lock {
		return c.Mutex(fmt.Sprintf("lock%d", i)).With(leasehold.LockOptions{TTL: 30 * time.Second})
	}
	ended := make(chan struct{})
	var held, waiting, group sync.WaitGroup
	held.Add(locks)
	waiting.Add(locks)
	for i := range locks {
		group.Go(func() {
			l, err := lock(holders, i).Acquire(ctx)
			if err != nil {
				t.Error(err)
				held.Done()
				return
			}
			resources[i].enter(t, l.Token())
			held.Done()
			<-ended
			for err := l.Extend(ctx); err != nil; err = l.Extend(ctx) { // on a loaded machine the other server may be too late
				if l.Err() != nil || ctx.Err() != nil {
					t.Errorf("the holder of lock%d after the end of the server: %v", i, err)
					break
				}
			}
			resources[i].inside.Add(-1)
			// The lock is free when the answer comes too late, or else when its TTL is over.
			if err := l.Release(ctx); errors.Is(err, leasehold.ErrLost) {
				t.Errorf("release of lock%d: %v", i, err)
			}
		})
		group.Go(func() {
			held.Wait()
			var once sync.Once
			l, err := lock(waiters, i).With(leasehold.LockOptions{OnWait: func(error) { once.Do(waiting.Done) }}).Acquire(ctx)
			once.Do(waiting.Done)
			if err != nil {
				t.Errorf("the waiter for lock%d: %v", i, err)
				return
			}
			resources[i].enter(t, l.Token())
			resources[i].inside.Add(-1)
			l.Release(ctx)
		})
	}
	waiting.Wait()
	a.Signal(end)
	<-a.Done()
	close(ended)
	group.Wait()
}

func TestServerIsKilled(t *testing.T)    { testServerEnds(t, syscall.SIGKILL) }
func TestServerIsRestarted(t *testing.T) { testServerEnds(t, syscall.SIGTERM) }

// Two servers restart one after the other under load: no lease is lost, and no lock has two
// holders.
func TestRollingRestartUnderLoad(t *testing.T) {
	dir := "file:" + t.TempDir()
	servers := []*server{startProcess(t, dir), startProcess(t, dir)}
	// The servers come back at other ports, so a proxy has the address that clients know.
	fronts := []*front{newFront(t, servers[0].url), newFront(t, servers[1].url)}
	c := leasehold.New(remote(t, "http://"+fronts[0].addr+","+fronts[1].addr, nil), nil)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var resources [5]resource
	var turns, lost atomic.Int64
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			for ctx.Err() == nil {
				l, err := c.Mutex(fmt.Sprintf("lock%d", i%5)).With(leasehold.LockOptions{TTL: 30 * time.Second}).Acquire(ctx)
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("acquire: %v", err)
					}
					return
				}
				r := &resources[i%5]
				r.enter(t, l.Token())
				time.Sleep(2 * time.Millisecond)
				r.inside.Add(-1)
				if err := l.Release(context.Background()); errors.Is(err, leasehold.ErrLost) {
					lost.Add(1)
				}
				turns.Add(1)
			}
		})
	}
	for i := range 4 {
		before := turns.Load()
		eventually.True(t, "the locks have changed hands", func() bool { return turns.Load() > before+50 })
		old := servers[i%2]
		servers[i%2] = startProcess(t, dir)
		old.Signal(syscall.SIGTERM)
		fronts[i%2].to.Store(strings.TrimPrefix(servers[i%2].url, "http://"))
		<-old.Done()
	}
	before := turns.Load()
	eventually.True(t, "the locks have changed hands", func() bool { return turns.Load() > before+50 })
	stop()
	group.Wait()
	if lost.Load() > 0 {
		t.Errorf("%d leases were lost in %d turns", lost.Load(), turns.Load())
	}
}

// front forwards connections to a server that can be replaced.
type front struct {
	addr string
	to   atomic.Value
}

func newFront(t *testing.T, url string) *front {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &front{addr: l.Addr().String()}
	f.to.Store(strings.TrimPrefix(url, "http://"))
	var group sync.WaitGroup
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer c.Close()
				s, err := net.Dial("tcp", f.to.Load().(string))
				if err != nil {
					return
				}
				defer s.Close()
				group.Go(func() { io.Copy(s, c); s.Close(); c.Close() })
				io.Copy(c, s)
			})
		}
	})
	t.Cleanup(func() { l.Close(); group.Wait() })
	return f
}

// A hold that is kept goes on at another server after the one it used was killed, with the same
// token. Until then the client knows from its own clock that the lease is valid.
func TestHoldGoesOnElsewhere(t *testing.T) {
	dir := "file:" + t.TempDir()
	a, b := startProcess(t, dir), startProcess(t, dir)
	h := open(t, a.url, "/v1/locks/a/hold", m{"ttl_ms": 30_000, "keep": true})
	held := h.next()
	a.Kill()
	if r := ask(t, "POST", b.url, "/v1/locks/a/hold", m{"wait_ms": 0}); r.status != 409 {
		t.Errorf("another client: %d %s, want that the lock is held", r.status, r.text)
	}
	if e := open(t, b.url, "/v1/locks/a/hold", m{"owner": held["owner"], "ttl_ms": 30_000, "keep": true}).next(); e["token"] != held["token"] {
		t.Errorf("the holder goes on with %v, want %v", e, held)
	}
}

// smallBuffers is a listener whose connections keep little that is not read.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		c.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return c, err
}

// Connections that send nothing, or half a request, or do not read, hold up nobody, and end.
func TestSlowClients(t *testing.T) {
	_, s := start(t, serve.Options{Heartbeat: time.Millisecond, Patience: 300 * time.Millisecond})
	at := serve.Listening{Address: "127.0.0.1:0", Drain: time.Second}
	l, err := s.Listen(at)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), smallBuffers{l}, at) }()
	t.Cleanup(func() {
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	url := "http://" + l.Addr().String()
	var conns []net.Conn
	for i := range 1000 {
		c := dial(t, url)
		switch i % 4 {
		case 1:
			io.WriteString(c, "POST /v1/locks/a/acq")
		case 2:
			io.WriteString(c, "POST /v1/locks/a/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{\"owner\":")
		case 3:
			io.WriteString(c, "POST /v1/locks/slow/hold HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"pur")
		}
		conns = append(conns, c)
	}
	for i := range 50 {
		owner := store.NewOwner()
		if r := ask(t, "POST", url, "/v1/locks/b/acquire", m{"owner": owner}); r.status != 200 {
			t.Fatalf("acquire %d beside slow clients: %d %s", i, r.status, r.text)
		}
		ask(t, "POST", url, "/v1/locks/b/release", m{"owner": owner})
	}
	for i, c := range conns[:8] {
		c.SetReadDeadline(time.Now().Add(30 * time.Second))
		b, err := io.ReadAll(c)
		if i%4 >= 2 && !strings.Contains(string(b), "#invalid") || err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("connection %d: %.300q, %v, want an end, and the problem invalid after half a body", i, b, err)
		}
	}
	// A client that does not read the answer to a batch is cut off once the buffers are full.
	const calls, purpose = 1000, 3500
	if r := ask(t, "POST", url, "/v1/locks/long/acquire", m{"owner": store.NewOwner(), "purpose": strings.Repeat("p", purpose)}); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.text)
	}
	body := strings.Repeat(`{"do":"acquire","name":"long","owner":"other"}`+"\n", calls)
	batch := dial(t, url)
	fmt.Fprintf(batch, "POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	defer func() {
		batch.SetReadDeadline(time.Now().Add(30 * time.Second))
		if n, err := io.Copy(io.Discard, batch); n >= calls*purpose || err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%d bytes of the answer, %v, want its beginning at most", n, err)
		}
	}()
	// A holder that does not read loses its lock once the buffers are full.
	c := dial(t, url)
	c.(*net.TCPConn).SetReadBuffer(1)
	unread := "/v1/locks/" + strings.Repeat("unread", 170) // so that lines are long
	io.WriteString(c, "POST "+unread+"/hold HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n\r\n{\"ttl_ms\":3000}")
	eventually.True(t, "the lock is held", func() bool { return ask(t, "GET", url, unread, nil).body["held"] == true })
	eventually.True(t, "a holder that does not read has lost its lock", func() bool { return ask(t, "GET", url, unread, nil).body["held"] == false })
}
