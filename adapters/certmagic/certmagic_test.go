package certmagic_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	lib "github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/certmagic"
	"github.com/leasehold-dev/leasehold/internal/testenv/adaptertest"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// lockless is a storage whose own locks must not be used.
type lockless struct {
	lib.Storage
	t *testing.T
}

func (l lockless) Lock(context.Context, string) error {
	l.t.Error("the storage's own lock was taken, want it unused")
	return nil
}

func (l lockless) Unlock(context.Context, string) error {
	l.t.Error("the storage's own lock was released, want it unused")
	return nil
}

func storages(t *testing.T, n int) (*store.Store, []*certmagic.Storage) {
	st := memstore.New(nil)
	t.Cleanup(func() { st.Close() })
	files := lockless{&lib.FileStorage{Path: t.TempDir()}, t}
	var all []*certmagic.Storage
	for range n {
		all = append(all, certmagic.New(files, leasehold.New(st, nil), nil))
	}
	return st, all
}

// authority issues certificates, and counts them.
type authority struct {
	key    *ecdsa.PrivateKey
	issued atomic.Int64
}

func (*authority) IssuerKey() string { return "test" }

func (a *authority) Issue(_ context.Context, r *x509.CertificateRequest) (*lib.IssuedCertificate, error) {
	a.issued.Add(1)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: r.Subject, DNSNames: r.DNSNames, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, r.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return &lib.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// Machines with one storage that want a certificate at the same time obtain it once.
func TestCertificateIsObtainedOnce(t *testing.T) {
	_, all := storages(t, 3)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &authority{key: key}
	var wait sync.WaitGroup
	for _, s := range all {
		wait.Go(func() {
			var config *lib.Config
			cache := lib.NewCache(lib.CacheOptions{GetConfigForCert: func(lib.Certificate) (*lib.Config, error) { return config, nil }, Logger: zap.NewNop()})
			defer cache.Stop()
			config = lib.New(cache, lib.Config{Storage: s, Issuers: []lib.Issuer{ca}, Logger: zap.NewNop()})
			if err := config.ObtainCertSync(t.Context(), "example.com"); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if n := ca.issued.Load(); n != 1 {
		t.Errorf("%d certificates were issued, want 1", n)
	}
}

// Machines with one storage exclude each other, and so do the goroutines of one.
func TestExcludes(t *testing.T) {
	_, all := storages(t, 3)
	n := 0 // guarded by the lock alone
	var wait sync.WaitGroup
	for _, s := range all {
		for range 3 {
			wait.Go(func() {
				for range 10 {
					if err := s.Lock(t.Context(), "issue_cert_example.com"); err != nil {
						t.Error(err)
						return
					}
					n++
					if err := s.Unlock(t.Context(), "issue_cert_example.com"); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wait.Wait()
	if n != 3*3*10 {
		t.Errorf("counted to %d, want %d", n, 3*3*10)
	}
}

// All calls of CertMagic about locks work, and data goes to the storage.
func TestLocks(t *testing.T) {
	st, all := storages(t, 2)
	ours, theirs := all[0], all[1]
	ctx := t.Context()
	if got, err := ours.TryLock(ctx, "a"); !got || err != nil {
		t.Fatal(got, err)
	}
	if state, err := st.Inspect(ctx, "certmagic/a"); err != nil || !state.Held {
		t.Errorf("the lock is %+v (%v), want it held", state, err)
	}
	if got, err := theirs.TryLock(ctx, "a"); got || err != nil {
		t.Errorf("locked on two machines: %v, %v, want false", got, err)
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if err := theirs.Lock(short, "a"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, leasehold.ErrBusy) {
		t.Errorf("a wait that its context ended: %v, want %v and %v", err, context.DeadlineExceeded, leasehold.ErrBusy)
	}
	if err := ours.RenewLockLease(ctx, "a", time.Hour); err != nil {
		t.Error(err)
	}
	if err := theirs.RenewLockLease(ctx, "a", time.Hour); err == nil {
		t.Error("renewing the lock of another machine: no error, want one")
	}
	if err := theirs.Unlock(ctx, "a"); err == nil {
		t.Error("unlocking the lock of another machine: no error, want one")
	}
	if err := ours.Store(ctx, "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	if v, err := theirs.Load(ctx, "k"); string(v) != "v" || err != nil {
		t.Errorf("loaded %q, %v, want v", v, err)
	}
	if err := ours.Unlock(ctx, "a"); err != nil {
		t.Error(err)
	}
	if err := theirs.Lock(ctx, "a"); err != nil {
		t.Error(err)
	}
	if err := theirs.Unlock(ctx, "a"); err != nil {
		t.Error(err)
	}
}

// CertMagic makes the names of locks out of domains, addresses and identifiers, which
// may come from requests. Each is its own lock, with that name after the prefix.
func TestNames(t *testing.T) {
	st, err := redisstore.Open(t.Context(), "redis://"+redistest.Start(t).Addr(), adaptertest.Patient())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	client := leasehold.New(st, nil)
	files := lockless{&lib.FileStorage{Path: t.TempDir()}, t}
	ours, theirs := certmagic.New(files, client, nil), certmagic.New(files, client, nil)
	names := []string{
		"issue_cert_example.com", "issue_cert_EXAMPLE.COM", "issue_cert_*.example.com", "issue_cert_b\u00fccher.example", "issue_cert_bu\u0308cher.example",
		"issue_cert_2001:db8::1", "register_acme_account_\"A B\" <a+b@example.com>", "ari_aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE", "storage_clean",
		"a/b", "../b", "a b ", "a\nb", "a\x00b", "\xff", "", "{x}:token", "leasehold:x", "%2e%s", strings.Repeat("n", 300), strings.Repeat("\u00fc", 300),
	}
	for _, name := range names {
		if got, err := ours.TryLock(t.Context(), name); !got || err != nil {
			t.Errorf("locking %q beside the others: %v, %v, want true", name, got, err)
		}
		if state, err := st.Inspect(t.Context(), "certmagic/"+name); err != nil || !state.Held {
			t.Errorf("the lock of %q is %+v (%v), want it held", name, state, err)
		}
	}
	for _, name := range names {
		if got, err := theirs.TryLock(t.Context(), name); got || err != nil {
			t.Errorf("%q locked on two machines: %v, %v, want false", name, got, err)
		}
		if err := ours.Unlock(t.Context(), name); err != nil {
			t.Errorf("unlocking %q: %v, want no error", name, err)
		}
	}

	long := strings.Repeat("n", store.MaxName)
	for what, err := range map[string]error{
		"too long": ours.Lock(t.Context(), long), "a prefix of Leasehold's own": certmagic.New(files, client, &certmagic.Options{Prefix: "leasehold:"}).Lock(t.Context(), "a"),
	} {
		if !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", what, err)
		}
	}
}

// If the store cannot be reached, nothing is locked, and the error says why. A lock that was held
// then is reported with the unlock, and free when its TTL is over. A lock whose context
// has ended is unlocked all the same.
func TestStoreGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := virtual.Clock()
		far := adaptertest.NewCut(t, now)
		s := certmagic.New(lockless{t: t}, leasehold.New(far.Store, &leasehold.Options{Clock: now}), nil)
		ctx, cancel := context.WithCancel(t.Context())
		for _, name := range []string{"a", "b"} {
			if err := s.Lock(ctx, name); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		if err := s.Lock(ctx, "c"); !errors.Is(err, context.Canceled) {
			t.Errorf("locked for a context that has ended: %v, want %v", err, context.Canceled)
		}
		if err := s.Unlock(ctx, "b"); err != nil {
			t.Errorf("unlocked for a context that has ended: %v, want no error", err)
		}
		far.Down.Store(true)
		if err := s.Lock(t.Context(), "b"); !errors.Is(err, adaptertest.ErrDown) {
			t.Errorf("locked without a store: %v, want %v", err, adaptertest.ErrDown)
		}
		if got, err := s.TryLock(t.Context(), "b"); got || !errors.Is(err, adaptertest.ErrDown) {
			t.Errorf("tried without a store: %v, %v, want false and %v", got, err, adaptertest.ErrDown)
		}
		if err := s.RenewLockLease(t.Context(), "a", time.Minute); err != nil {
			t.Errorf("renewed while the lease is valid: %v, want no error", err)
		}
		time.Sleep(time.Minute)
		if err := s.RenewLockLease(t.Context(), "a", time.Minute); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("renewed after the end of the lease: %v, want %v", err, leasehold.ErrLost)
		}
		if err := s.Unlock(t.Context(), "a"); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("unlocked after the end of the lease: %v, want %v", err, leasehold.ErrLost)
		}
		far.Down.Store(false)
		for _, name := range []string{"a", "b"} {
			if err := s.Lock(t.Context(), name); err != nil {
				t.Error(err)
			}
			if err := s.Unlock(t.Context(), name); err != nil {
				t.Error(err)
			}
		}
	})
}

// The unlock of a lock that was lost does not release it for the goroutine of the same
// process that has it now.
func TestLostAndLockedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := virtual.Clock()
		st := memstore.New(&memstore.Options{Clock: now})
		defer st.Close()
		s := certmagic.New(lockless{t: t}, leasehold.New(st, &leasehold.Options{Clock: now}), &certmagic.Options{Lock: leasehold.LockOptions{MaxHold: time.Minute}})
		if err := s.Lock(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if err := s.Lock(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if err := s.Unlock(t.Context(), "a"); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("the first unlock: %v, want %v", err, leasehold.ErrLost)
		}
		if state, err := st.Inspect(t.Context(), "certmagic/a"); err != nil || !state.Held {
			t.Errorf("after the first unlock the lock is %+v (%v), want it held", state, err)
		}
		if err := s.Unlock(t.Context(), "a"); err != nil {
			t.Errorf("the second unlock: %v, want no error", err)
		}
		if err := s.Unlock(t.Context(), "a"); err == nil {
			t.Error("the third unlock: no error, want one")
		}
	})
}

func ExampleNew() {
	st := memstore.New(nil) // or a Redis, a database, a file
	defer st.Close()
	dir, err := os.MkdirTemp("", "leasehold-certmagic")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	storage := certmagic.New(&lib.FileStorage{Path: dir}, leasehold.New(st, nil), nil)
	cache := lib.NewCache(lib.CacheOptions{GetConfigForCert: func(lib.Certificate) (*lib.Config, error) { return &lib.Default, nil }})
	defer cache.Stop()
	config := lib.New(cache, lib.Config{Storage: storage})
	fmt.Println(config.Storage == lib.Storage(storage))
	// Output: true
}
