package docs_test

import (
	"context"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// Each program holds the lock eight times. While it holds the lock, also after it has
// extended the lease, it has a directory that nobody else may have made.
const (
	workInPython = `
import lock, os, sys
redis = lock.connect(sys.argv[1], int(sys.argv[2]))
mine, other = lock.Lock(redis, "stock", ttl=60), lock.Lock(redis, "stock", ttl=60)
for i in range(8):
    assert mine.acquire(wait=300), "no lock within five minutes"
    os.mkdir("held")
    other.value, other.until = "somebody else", mine.until
    assert not other.release() and not other.extend(), "changed by somebody else"
    assert mine.extend() and mine.held(), "not extended"
    os.rmdir("held")
    assert mine.release() and not mine.held(), "not released"
    assert not mine.release(), "released twice"
    assert not mine.extend(), "extended after the release"
`
	workInNode = `
import assert from 'node:assert'
import fs from 'node:fs'
import { Lock, connect } from './lock.mjs'
const redis = await connect(process.argv[2], Number(process.argv[3]))
const mine = new Lock(redis, 'stock', 60000)
const other = new Lock(redis, 'stock', 60000)
for (let i = 0; i < 8; i++) {
  assert(await mine.acquire(300000), 'no lock within five minutes')
  fs.mkdirSync('held')
  Object.assign(other, { value: 'somebody else', until: mine.until })
  assert(!(await other.release()) && !(await other.extend()), 'changed by somebody else')
  assert((await mine.extend()) && mine.held(), 'not extended')
  fs.rmdirSync('held')
  assert((await mine.release()) && !mine.held(), 'not released')
  assert(!(await mine.release()), 'released twice')
  assert(!(await mine.extend()), 'extended after the release')
}
redis.close()
`
)

// TestOtherLanguages has the clients of docs/languages.md compete with ours for a lock.
func TestOtherLanguages(t *testing.T) {
	t.Parallel() // it mostly waits
	page, err := os.ReadFile("docs/languages.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ interpreter, file, work string }{
		{"python3", "work.py", workInPython},
		{"node", "work.mjs", workInNode},
	} {
		t.Run(c.interpreter, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, b := range documented(page) {
				if b.file != "" {
					writeFile(t, filepath.Join(dir, b.file), b.text)
				}
			}
			writeFile(t, filepath.Join(dir, c.file), c.work)
			server := redistest.Start(t)
			host, port, err := net.SplitHostPort(server.Addr())
			if err != nil {
				t.Fatal(err)
			}
			theirs := exec.Command(c.interpreter, c.file, host, port)
			theirs.Dir = dir
			ended := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				defer close(ended)
				defer cancel()
				if out, err := theirs.CombinedOutput(); err != nil {
					t.Errorf("%s %s: %v (make test installs the interpreter)\n%s", c.interpreter, c.file, err, out)
				}
			}()
			holds := holdUntil(t, ctx, server.Addr(), filepath.Join(dir, "held"))
			<-ended
			if holds < 2 {
				t.Errorf("Leasehold had the lock %d times while the other client competed for it, want 2 at least", holds)
			}
		})
	}
}

// holdUntil acquires and releases the lock until ctx ends, and returns how many times it
// held the lock. While it does, it has the directory named held, which must not exist before.
func holdUntil(t *testing.T, ctx context.Context, addr, held string) int {
	st, err := redisstore.Open(t.Context(), "redis://"+addr, nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer st.Close()
	lock := leasehold.New(st, nil).Mutex("stock").With(leasehold.LockOptions{TTL: time.Minute})
	holds := 0
	for ctx.Err() == nil {
		err := lock.Do(ctx, func(context.Context, *leasehold.Lease) error {
			holds++
			if err := os.Mkdir(held, 0o755); err != nil {
				return err
			}
			time.Sleep(upTo20ms())
			return os.Remove(held)
		})
		if err != nil && ctx.Err() == nil {
			t.Error(err)
			return holds
		}
		// Leave the key free for a moment: their client polls.
		select {
		case <-ctx.Done():
		case <-time.After(upTo20ms()):
		}
	}
	return holds
}

func upTo20ms() time.Duration { return time.Duration(rand.IntN(20)) * time.Millisecond }

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
