package natsstoretest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/idle"
	"github.com/leasehold-dev/leasehold/internal/testenv/objectstest"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/natsstore"
	"github.com/leasehold-dev/leasehold/store/recordstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

var buckets atomic.Int64

func TestConforms(t *testing.T) {
	for name, synced := range map[string]bool{"efficiency": false, "crash-safe": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, server.Options{SyncAlways: synced})
			o := natsstore.Options{Synced: synced}
			second := func(t *testing.T) *store.Store { return open(t, []string{srv.ClientURL()}, &o) }
			storetest.Run(t, func(t *testing.T) *store.Store {
				o.Bucket = fmt.Sprintf("b%d", buckets.Add(1))
				return second(t)
			}, storetest.Options{Second: second, ShortTTL: 600 * time.Millisecond, Observed: true})
		})
	}
}

// The suite holds while connections end, some of them when the server has carried out a request
// and before its answer.
func TestConformsUnderFaults(t *testing.T) {
	t.Parallel()
	srv := start(t, server.Options{SyncAlways: true})
	p := faultproxy.New(t, srv.Addr().String())
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			clock.Sleep(ctx, 200*time.Millisecond+rand.N(300*time.Millisecond))
			p.CutReplyTo("PUB leasehold", 0)
		}
	})
	defer func() {
		cancel()
		wg.Wait()
	}()
	o := natsstore.Options{Synced: true}
	second := func(t *testing.T) *store.Store { return open(t, []string{p.Addr()}, &o) }
	storetest.Run(t, func(t *testing.T) *store.Store {
		o.Bucket = fmt.Sprintf("b%d", buckets.Add(1))
		return second(t)
	}, storetest.Options{Second: second, ShortTTL: 600 * time.Millisecond, Observed: true})
}

// What the doctor is told of servers that work, and of those that do not answer.
func TestExamine(t *testing.T) {
	srv := start(t, server.Options{})
	e, err := natsstore.Examine(t.Context(), srv.ClientURL(), &natsstore.Options{Synced: true})
	if err != nil || e.Unusable != nil || e.Class != store.CrashSafe || e.Replicas != 1 || e.Version == "" || len(e.Behind) > 0 {
		t.Errorf("examine: %+v, %v, want a usable server", e, err)
	}
	if e, err := natsstore.Examine(t.Context(), fmt.Sprint("nats://127.0.0.1:", freePorts(t, 1)[0]), nil); err != nil || e.Unusable == nil {
		t.Errorf("examine a port at which nothing listens: %+v, %v, want that it is unusable", e, err)
	}
}

// The doctor is told of servers that do not sync every write, though the URL says so, and of
// those whose monitoring port is not named.
func TestExamineSync(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t, 1)
	e, err := natsstore.Examine(t.Context(), "nats://"+strings.Join(nodes.addresses(), ","), &natsstore.Options{Synced: true, Timeout: 30 * time.Second, Monitors: nodes.monitors()[:2]})
	if err != nil || e.Unusable != nil || e.Replicas != 3 || !slices.Equal(e.Unseen, []string{"n2"}) || !slices.Equal(e.Unsynced, []string{"n1"}) {
		t.Errorf("examine: %+v, %v, want n1 unsynced and n2 unseen", e, err)
	}
}

// The class depends on what the URL says of the servers, and on how many keep the stream.
func TestClass(t *testing.T) {
	one, three := start(t, server.Options{}), startCluster(t)
	for _, c := range []struct {
		servers []string
		o       natsstore.Options
		want    store.Class
	}{
		{[]string{one.ClientURL()}, natsstore.Options{}, store.Efficiency},
		{[]string{one.ClientURL()}, natsstore.Options{Synced: true}, store.CrashSafe},
		{three.addresses(), natsstore.Options{}, store.Efficiency},
		{three.addresses(), natsstore.Options{Synced: true, Bucket: "single", Replicas: 1}, store.CrashSafe},
		{three.addresses(), natsstore.Options{Synced: true, Timeout: 20 * time.Second}, store.Consensus},
	} {
		c.o.Timeout = 30 * time.Second
		s := open(t, c.servers, &c.o)
		if got := s.Caps().Class; got != c.want {
			t.Errorf("%d servers, %+v: class %v, want %v", len(c.servers), c.o, got, c.want)
		}
	}
}

func TestDeadHolderIsSeenByNewClients(t *testing.T) {
	srv := start(t, server.Options{})
	objectstest.DeadHolderIsSeenByNewClients(t, func(skew time.Duration) *store.Store {
		return open(t, []string{srv.ClientURL()}, &natsstore.Options{Skew: skew})
	})
}

// Streams that cannot keep locks are refused, and the error says what to change.
func TestUnfitStreams(t *testing.T) {
	srv := start(t, server.Options{})
	nc, err := nats.Connect(srv.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	fit := jetstream.StreamConfig{MaxMsgsPerSubject: 1, Storage: jetstream.FileStorage, AllowMsgTTL: true}
	for want, change := range map[string]func(*jetstream.StreamConfig){
		"made for something else": func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 5 },
		"allow_direct":            func(c *jetstream.StreamConfig) { c.AllowDirect = true },
		"in memory":               func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"persist_mode":            func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode },
		"max_age":                 func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"allow_msg_ttl":           func(c *jetstream.StreamConfig) { c.AllowMsgTTL = false },
		"":                        func(*jetstream.StreamConfig) {},
	} {
		bucket := fmt.Sprintf("u%d", buckets.Add(1))
		c := fit
		c.Name, c.Subjects = "LEASEHOLD_"+bucket, []string{"leasehold." + bucket + ".>"}
		change(&c)
		if _, err := js.CreateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		s, err := natsstore.Open(t.Context(), srv.ClientURL(), &natsstore.Options{Bucket: bucket})
		switch {
		case want == "" && err != nil:
			t.Errorf("a fit stream: %v", err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, recordstore.ErrRefused)):
			t.Errorf("a stream that is unfit because of %s: %v", want, err)
		}
		if s != nil {
			s.Close()
		}
	}
}

// A user with the documented rights can lock; one without them is told so.
func TestRights(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/nats.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(doc), "publish:")
	list, _, _ = strings.Cut(list, "subscribe:")
	var allowed []string
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) > 0 {
			allowed = append(allowed, f[0])
		}
	}
	user := func(name string, publish []string) *server.User {
		return &server.User{Username: name, Password: "secret", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: publish},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}}
	}
	srv := start(t, server.Options{Users: []*server.User{user("app", allowed), user("other", []string{"other.>"})}})
	app := open(t, []string{srv.ClientURL()}, &natsstore.Options{User: "app", Password: "secret"})
	c := leasehold.New(app, nil)
	if err := c.Mutex("a").Do(t.Context(), func(ctx context.Context, l *leasehold.Lease) error {
		waits := make(chan error, 1)
		go func() {
			next, err := leasehold.New(app, nil).Mutex("a").Acquire(context.WithoutCancel(t.Context()))
			if err == nil {
				err = next.Release(t.Context())
			}
			waits <- err
		}()
		t.Cleanup(func() {
			if err := <-waits; err != nil {
				t.Errorf("a waiter with the least rights: %v", err)
			}
		})
		_, err := app.List(ctx, "")
		return err
	}); err != nil {
		t.Errorf("with the least rights: %v", err)
	}
	_, err = natsstore.Open(t.Context(), srv.ClientURL(), &natsstore.Options{User: "other", Password: "secret", Timeout: time.Second})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("without rights: %v, want an error without the password", err)
	}
	_, err = natsstore.Open(t.Context(), srv.ClientURL(), &natsstore.Options{User: "app", Password: "wrong-secret"})
	if !errors.Is(err, nats.ErrAuthorization) || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("with a wrong password: %v, want a refusal without the password", err)
	}
}

// A server whose certificate nobody trusts is refused. A client has a certificate of its own if
// the URL names one.
func TestTLS(t *testing.T) {
	cert, key := redistest.SelfSigned(t, t.TempDir())
	config, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: cert, KeyFile: key, CaFile: cert, Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	srv := start(t, server.Options{TLS: true, TLSConfig: config, TLSTimeout: 10})
	url := "nats://" + srv.Addr().String() + "?timeout=10s&tls=true"
	for _, c := range []struct{ url, says string }{
		{url, "certificate"},
		{url + "&ca=" + cert, "tls"},
		{url + "&ca=" + cert + "&cert=" + cert + "&key=" + key, ""},
	} {
		s, err := store.Open(t.Context(), c.url, nil)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error with %q", c.url, err, c.says)
		}
		if err == nil {
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: lease("a", time.Minute)}); err != nil {
				t.Error(err)
			}
			s.Close()
		}
	}
}

// An idle holder and an idle waiter send as many messages as docs/nats.md says.
func TestIdleCost(t *testing.T) {
	t.Parallel()
	srv := start(t, server.Options{})
	const ttl = 3 * time.Second
	holder, waiter := open(t, []string{srv.ClientURL()}, nil), open(t, []string{srv.ClientURL()}, nil)
	before, after, passed := idle.Cost(t, holder, waiter, ttl, func() int { return int(received(t, srv)) })
	n := after - before
	// Each refreshes in a third of the TTL, and reads the record again if the other one has changed it.
	thirds, looks := int(passed/(ttl/3))+2, int(passed/(3*time.Second/2))+1
	if most := 2*3*thirds + looks + 4; n > most || n < thirds {
		t.Errorf("%d messages in %v, want %d to %d", n, passed, thirds, most)
	}
	t.Logf("%d messages in %v with a TTL of %v", n, passed.Round(time.Millisecond), ttl)
}

// Each verb meets each fault.
func TestFaults(t *testing.T) {
	srv := start(t, server.Options{})
	storetest.RunFaults(t, func(t *testing.T) (*store.Store, storetest.Link) {
		p := faultproxy.New(t, srv.Addr().String())
		return open(t, []string{p.Addr()}, nil), p
	}, storetest.Options{Second: func(t *testing.T) *store.Store { return open(t, []string{srv.ClientURL()}, nil) }})
}
