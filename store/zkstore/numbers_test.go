package zkstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/adler32"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/testenv/zktest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// Once a lock has had 2^31 places, the server gives the same number to all others. They have no
// order, so they are refused until the lock's node is removed and its numbers begin again.
func TestNumbersRunOut(t *testing.T) {
	t.Parallel() // it mostly waits
	server, err := zktest.Launch(zktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	const name = "numbers run out"
	counted := DefaultBase + "/" + name + "/counted"
	native := func(do func(*gozk.Conn) error) {
		t.Helper()
		c, _, err := gozk.Connect([]string{server.Addr}, 10*time.Second, gozk.WithLogger(silent{}))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := do(c); err != nil {
			t.Fatal(err)
		}
	}
	s := mustOpen(t, &Options{servers: []string{server.Addr}})
	first := request(name, 10*time.Second)
	mustAcquire(t, s, first)
	mustRelease(t, s, first)
	native(func(c *gozk.Conn) error {
		_, err := c.Create(counted, nil, 0, gozk.WorldACL(gozk.PermAll))
		return err
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	conf, err := server.Ask("conf")
	if err != nil {
		t.Fatal(err)
	}
	dir := regexp.MustCompile(`(?m)^dataLogDir=(.*)$`).FindStringSubmatch(conf)
	if dir == nil {
		t.Fatalf("the server says %q", conf)
	}
	server.Kill()
	count(t, dir[1], counted, math.MaxInt32-2)
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}

	native(func(c *gozk.Conn) error { return c.Delete(counted, -1) })
	s = mustOpen(t, &Options{servers: []string{server.Addr}})
	last, held := request(name, 10*time.Second), request(name, 10*time.Second)
	mustAcquire(t, s, last)
	w := next(t, s, held)
	if w.place.seq != math.MaxInt32-1 {
		t.Fatalf("the place has the number %d, want %d", w.place.seq, math.MaxInt32-1)
	}
	queued, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: last}, store.WaitRequest{Lease: request(name, last.TTL)})
	if queued || err != nil {
		t.Fatalf("rejoin beyond the last number: queued %v, %v, want only the release", queued, err)
	}
	if err := w.pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g, err := w.look(t.Context()); g == nil || err != nil {
		t.Fatalf("the last place: %+v, %v, want a grant", g, err)
	}
	for range 3 {
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request(name, 10*time.Second)})
		if err == nil || !errors.Is(err, store.ErrBusy) && !strings.Contains(err.Error(), "no more numbers") {
			t.Fatalf("acquire a lock that is held: %v, want a refusal", err)
		}
		if _, err := s.enqueue(t.Context(), request(name, 10*time.Second)); !errors.Is(err, zk.ErrNotEmpty) {
			t.Fatalf("a place beyond the last number: %v, want %v", err, zk.ErrNotEmpty)
		}
	}
	if err := s.Renew(t.Context(), []store.Lease{held})[0]; err != nil {
		t.Errorf("renew: %v", err)
	}
	waits, refused, granted := request(name, 10*time.Second), make(chan struct{}, 1), make(chan error)
	go func() {
		_, err := s.Wait(t.Context(), store.WaitRequest{Lease: waits}, func(error) {
			select {
			case refused <- struct{}{}:
			default:
			}
		})
		granted <- err
	}()
	mustChange(t, "a waiter has no place", refused)
	mustRelease(t, s, held)
	if err := <-granted; err != nil {
		t.Fatalf("wait: %v", err)
	}
	if p := s.leases.get(leaseKey{name, waits.Owner}).place.Load(); p.seq != 0 {
		t.Errorf("the place has the number %d, want 0", p.seq)
	}
	mustRelease(t, s, waits)
}

// count changes the log of a server: after the transaction that made node, the parent of node has
// counted n changes.
func count(t *testing.T, dir, node string, n int32) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "log.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range logs {
		b, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		// A header of 16 bytes is followed by transactions: checksum, length, text, 'B'.
		for at := 16; at+12 < len(b); {
			size := int(binary.BigEndian.Uint32(b[at+8:]))
			if size == 0 {
				break
			}
			text := b[at+12:][:size]
			if _, rest, ok := bytes.Cut(text, []byte(node)); ok {
				const anyone = "anyone"
				rest = rest[bytes.Index(rest, []byte(anyone))+len(anyone)+1:] // behind the ACL and one byte
				binary.BigEndian.PutUint32(rest, uint32(n))
				binary.BigEndian.PutUint64(b[at:], uint64(adler32.Checksum(text)))
				if err := os.WriteFile(log, b, 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			at += 12 + size + 1
		}
	}
	t.Fatalf("no transaction in %q has made %s", logs, node)
}
