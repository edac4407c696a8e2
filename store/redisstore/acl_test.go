package redisstore_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// ruled has three servers with a user that has all rights until apply sets its rule.
type ruled struct {
	t       *testing.T
	servers []*redistest.Server
	path    string // of the URL
	// patience bounds the wait for what happens only if the rule is enough.
	patience time.Duration
}

// apply sets the user's rule.
func (r ruled) apply(rule []string) {
	r.t.Helper()
	for _, s := range r.servers {
		s.Text(r.t, "ACL", "SETUSER", "locker", "reset", "on", ">other", "~other", "+@all")
		args := []string{"ACL", "SETUSER"}
		for _, word := range rule {
			args = append(args, strings.Replace(word, redisadmin.Password, "pw", 1))
		}
		s.Text(r.t, args...)
		s.Text(r.t, "SCRIPT", "FLUSH")
		for _, key := range s.Keys(r.t) {
			s.Text(r.t, "DEL", key)
		}
		if r.path != "" { // a user with the right to read only cannot write the mark
			s.Text(r.t, "COPY", redistest.Mark, redistest.Mark, "DB", strings.Trim(r.path, "/"), "REPLACE")
		}
	}
}

func (r ruled) url() string {
	return "redis://locker:pw@" + strings.Join(addrs(r.servers), ",") + r.path
}

func (r ruled) open() (*store.Store, error) {
	return redisstore.Open(r.t.Context(), r.url(), patient())
}

// locks does all that a client does, and returns the first error.
func (r ruled) locks(name string) error {
	s, err := r.open()
	if err != nil {
		return err
	}
	defer s.Close()
	ctx := r.t.Context()
	r.servers[0].Text(r.t, "SET", "{"+name+"}:token", "9000000000000000") // so that the other servers must be updated
	l := request(name)
	if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: l}); err != nil {
		return err
	}
	for client := range strings.Lines(r.servers[0].Text(r.t, "CLIENT", "LIST")) {
		if strings.Contains(client, "user=locker") && !strings.Contains(client, "tB db=") {
			return fmt.Errorf("the server does not push that its data is replaced: %s", client)
		}
	}
	if err := s.Renew(ctx, []store.Lease{l})[0]; err != nil {
		return err
	}
	l.TTL *= 2 // so that the renewal has to write
	if err := s.Renew(ctx, []store.Lease{l})[0]; err != nil {
		return err
	}
	r.servers[2].Text(r.t, "DEL", name) // so that the renewal has to restore it
	if err := s.Renew(ctx, []store.Lease{l})[0]; err != nil {
		return err
	}
	eventually.True(r.t, "the lock is on the node that lost it", func() bool { return r.servers[2].Text(r.t, "EXISTS", name) == "1" })
	if st, err := s.Inspect(ctx, name); err != nil || !st.Held {
		return errors.Join(err, errors.New("inspect does not show the lock as held"))
	}
	if err := s.Release(ctx, store.ReleaseRequest{Lease: l, Renewed: true}); err != nil {
		return err
	}
	if err := s.Release(ctx, store.ReleaseRequest{Lease: l, Renewed: true}); !errors.Is(err, store.ErrNotHeld) { // which leaves a tombstone
		return err
	}
	if err := r.waits(s, name); err != nil {
		return err
	}
	return errors.Join(r.shares(s, name+"/permits"), r.respectsRedisson(s), r.excess())
}

// shares takes two permits of a semaphore, renews one, and releases both.
func (r ruled) shares(s *store.Store, name string) error {
	one, two := request(name), request(name)
	for _, l := range []*store.Lease{&one, &two} {
		l.Kind = store.Semaphore(2)
		g, err := s.Acquire(r.t.Context(), store.AcquireRequest{Lease: *l})
		if err != nil {
			return err
		}
		*l = g.Lease
	}
	one.TTL *= 2 // so that the renewal has to write
	err := s.Renew(r.t.Context(), []store.Lease{one})[0]
	if st, failed := s.Inspect(r.t.Context(), name); failed != nil || len(st.Holders) != 2 {
		err = errors.Join(err, failed, errors.New("inspect does not show both permits"))
	}
	return errors.Join(err, s.Release(r.t.Context(), store.ReleaseRequest{Lease: one}), s.Release(r.t.Context(), store.ReleaseRequest{Lease: two}))
}

// respectsRedisson checks that a lock of Redisson counts as held.
func (r ruled) respectsRedisson(s *store.Store) error {
	for _, server := range r.servers { // in a cluster, one of them has the slot
		_, err := server.Do(r.t.Context(), "EVAL", `redis.call('SELECT', ARGV[1])
			redis.call('HSET', KEYS[1], '0b16b1f0-5a25-4b5c-a22b-3f5b0b1c8f6e:1', 1)
			redis.call('PEXPIRE', KEYS[1], 600000)`, "1", "jobs/redisson", cmp.Or(strings.Trim(r.path, "/"), "0"))
		if err != nil && !strings.HasPrefix(err.Error(), "MOVED") {
			return err
		}
	}
	if st, err := s.Inspect(r.t.Context(), "jobs/redisson"); err != nil || !st.Held {
		return errors.Join(err, errors.New("inspect does not show a lock of Redisson as held"))
	}
	return nil
}

// waits checks that a waiter is notified when its turn comes.
func (r ruled) waits(s *store.Store, name string) error {
	held := request(name)
	takes(r.t, s, r.servers, held)
	ctx, cancel := context.WithCancel(r.t.Context())
	next := waiter(name)
	done := make(chan error, 1)
	go func() {
		_, err := s.Wait(ctx, store.WaitRequest{Lease: next}, nil)
		done <- err
	}()
	defer func() {
		cancel()
		<-done
	}()
	if !r.all(func(server *redistest.Server) bool { return placed(r.t, server, next) }) {
		return errors.New("the server cannot push")
	}
	// Another waiter, whose wait began earlier, gives up.
	other, over := context.WithCancel(ctx)
	defer over()
	before := next
	before.Owner = store.NewOwnerAt(time.Now().Add(-500 * time.Millisecond))
	gone := make(chan error, 1)
	go func() {
		_, err := s.Wait(other, store.WaitRequest{Lease: before}, nil)
		gone <- err
	}()
	queued := r.all(func(server *redistest.Server) bool { return placed(r.t, server, before) })
	over()
	if err := <-gone; !queued {
		return fmt.Errorf("a waiter that began earlier gets no place: %w", err)
	}
	if !r.all(func(server *redistest.Server) bool { return server.Text(r.t, "LLEN", "{"+name+"}:line") == "1" }) {
		return errors.New("a waiter that gives up cannot remove its place")
	}
	if err := s.Release(ctx, store.ReleaseRequest{Lease: held}); err != nil {
		return err
	}
	// Without a push the waiter learns so when it refreshes its place.
	select {
	case err := <-done:
		done <- nil
		return errors.Join(err, s.Release(ctx, store.ReleaseRequest{Lease: next}))
	case <-time.After(min(r.patience, next.TTL/6)):
		return errors.New("the waiter is not notified")
	}
}

// all waits until so is true of all servers, at most for r.patience.
func (r ruled) all(so func(*redistest.Server) bool) bool {
	for _, server := range r.servers {
		for deadline := time.Now().Add(r.patience); !so(server); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				return false
			}
		}
	}
	return true
}

// shows inspects a lock.
func (r ruled) shows() error {
	s, err := r.open()
	if err != nil {
		return err
	}
	defer s.Close()
	r.hold("jobs/1")
	if st, err := s.Inspect(r.t.Context(), "jobs/1"); err != nil || !st.Held || len(st.Queue) != 1 || st.Queue[0].Holder.Owner != "next" {
		return errors.Join(err, errors.New("inspect does not show the holder and its waiter"))
	}
	if st, err := s.Inspect(r.t.Context(), "jobs/permits"); err != nil || len(st.Holders) != 1 {
		return errors.Join(err, errors.New("inspect does not show who has a permit"))
	}
	return errors.Join(r.respectsRedisson(s), r.excess())
}

// hold writes the keys of a lock that has a holder and a waiter.
func (r ruled) hold(name string) {
	for _, server := range r.servers {
		server.Text(r.t, "EVAL", `redis.call('SELECT', ARGV[1])
			redis.call('SET', KEYS[1], '7')
			redis.call('SET', KEYS[2], 'owner {}')
			redis.call('DEL', KEYS[3])
			redis.call('RPUSH', KEYS[3], '1790000000000000 next')
			redis.call('SET', KEYS[4], '099999999999991790000000000000 1 0 - leasehold:to:x next', 'PX', 60000)`,
			"4", "{"+name+"}:token", name, "{"+name+"}:line", "{"+name+"}:place:next", cmp.Or(strings.Trim(r.path, "/"), "0"))
		server.Text(r.t, "EVAL", `redis.call('SELECT', ARGV[1])
			redis.call('SET', KEYS[1], ' s2 0')
			redis.call('HSET', KEYS[2], ' ', '1 1 7 1', 'owner', '1 7 1 1790000000000 0 0  owner {}')
			redis.call('ZADD', KEYS[3], '9000000000000', '0000000001 owner')
			redis.call('SET', KEYS[4], '7')`,
			"4", "jobs/permits", "{jobs/permits}:held", "{jobs/permits}:ends", "{jobs/permits}:token", cmp.Or(strings.Trim(r.path, "/"), "0"))
	}
}

// lists lists the locks.
func (r ruled) lists() error {
	s, err := r.open()
	if err != nil {
		return err
	}
	defer s.Close()
	r.hold("jobs/1")
	all, err := s.List(r.t.Context(), "jobs/")
	if err == nil && len(all) != 2 {
		err = errors.New("list does not show both locks")
	}
	return errors.Join(err, r.excess())
}

// declares the servers to be new, unless locks are held.
func (r ruled) declares() error {
	_, err := redisadmin.Bootstrap(r.t.Context(), r.url(), nil, false)
	if err != nil {
		return err
	}
	r.hold("jobs/1")
	if _, err = redisadmin.Bootstrap(r.t.Context(), r.url(), nil, false); errors.Is(err, store.ErrBusy) {
		return r.excess()
	}
	return fmt.Errorf("bootstrap does not notice a lock that is held: %w", err)
}

// examines examines the servers, and requires a complete result.
func (r ruled) examines() error {
	for _, server := range r.servers {
		server.Text(r.t, "HSET", "jobs/r", "0b16b1f0-5a25-4b5c-a22b-3f5b0b1c8f6e:1", "1")
		server.Text(r.t, "RPUSH", "jobs/l", "x")
	}
	e, err := redisadmin.Examine(r.t.Context(), r.url(), nil, redisadmin.Scope{TTL: 30 * time.Second, Prefix: "jobs/"})
	if err != nil {
		return err
	}
	for _, n := range e.Nodes {
		if n.Outcome != store.Granted || n.ServerErr != nil || n.Server.SettingsErr != nil || n.Mark.Err != nil || n.PushErr != nil || n.TrackingErr != nil || n.Keys.Err != nil || len(n.Lacking)+len(n.Failing) > 0 {
			return errors.Join(errors.New("the examination is not complete"), n.Err, n.ServerErr, n.Server.SettingsErr, n.Mark.Err, n.PushErr, n.TrackingErr, n.Keys.Err)
		}
		if !n.Mark.Found || n.AheadError == 0 {
			return errors.New("the examination finds no mark, or no time")
		}
		kind := map[redisadmin.Oddity]string{}
		for _, o := range n.Keys.Odd {
			kind[o.Oddity] = o.Examples[0].Key + o.Examples[0].Says
		}
		if kind[redisadmin.Redisson] != "jobs/r" || kind[redisadmin.WrongType] != "jobs/la list" {
			return errors.New("keys are reported as others")
		}
	}
	return r.excess()
}

// excess returns an error if the user has a right that it should not have.
func (r ruled) excess() error {
	for _, words := range []string{"LASTSAVE", "SET other x", "GET other", "PUBLISH other x"} {
		said, err := asLocker(r.servers[0].Addr(), words)
		if err != nil || !strings.HasPrefix(said, "-NOPERM") {
			return fmt.Errorf("the user may %s: %s, %w", words, said, err)
		}
	}
	return nil
}

// asLocker makes the server run one command for the user, and returns the first line of its
// reply.
func asLocker(addr, words string) (string, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "AUTH locker pw\r\n%s\r\n", words); err != nil {
		return "", err
	}
	in := bufio.NewReader(conn)
	if said, err := in.ReadString('\n'); err != nil || said != "+OK\r\n" {
		return said, err
	}
	return in.ReadString('\n')
}

// The rule that is printed is enough, and nothing in it can be dropped.
func TestLeastPrivilege(t *testing.T) {
	t.Parallel() // it mostly waits
	r := ruled{t: t, servers: redistest.StartN(t, 3)}
	for name, c := range map[string]struct {
		acl  redisadmin.ACL
		path string
		work func(ruled) error
	}{
		"lock":     {redisadmin.ACL{Uses: redisadmin.ToLock}, "", func(r ruled) error { return r.locks("jobs/1") }},
		"show":     {redisadmin.ACL{Uses: redisadmin.ToShow}, "", ruled.shows},
		"list":     {redisadmin.ACL{Uses: redisadmin.ToList}, "", ruled.lists},
		"examine":  {redisadmin.ACL{Uses: redisadmin.ToExamine}, "", ruled.examines},
		"database": {redisadmin.ACL{Uses: redisadmin.ToShow, DB: true}, "/2", ruled.shows},
		"declare":  {redisadmin.ACL{Uses: redisadmin.ToDeclare}, "", ruled.declares},
		"both":     {redisadmin.ACL{Uses: redisadmin.ToLock | redisadmin.ToList}, "", func(r ruled) error { return errors.Join(r.locks("jobs/2"), r.lists()) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := ruled{t, r.servers, c.path, long}
			c.acl.User, c.acl.Prefix = "locker", "jobs/"
			rule, err := c.acl.Rule()
			if err != nil {
				t.Fatal(err)
			}
			r.apply(rule)
			if err := c.work(r); err != nil {
				t.Fatalf("with the whole rule: %v", err)
			}
			r.patience = 500 * time.Millisecond
			for i := 1; i < len(rule); i++ {
				r.apply(slices.Delete(slices.Clone(rule), i, i+1))
				if err := c.work(r); err == nil && rule[i] != "~"+redistest.Alone { // which protects the locks of others
					t.Errorf("%s can be dropped", rule[i])
				}
			}
		})
	}
}

// A user with the right to read only cannot acquire a lock.
func TestReadOnlyUserCannotAcquire(t *testing.T) {
	r := ruled{t: t, servers: redistest.StartN(t, 3)}
	rule, err := redisadmin.ACL{User: "locker", Uses: redisadmin.ToShow | redisadmin.ToList}.Rule()
	if err != nil {
		t.Fatal(err)
	}
	r.apply(rule)
	s, err := r.open()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); err == nil || !strings.Contains(err.Error(), "permission") {
		t.Errorf("acquire: %v, want an error that names the permission", err)
	}
	if !noLock(t, r.servers, "a")() {
		t.Error("the lock was written")
	}
}

// The line for redis-cli is the rule, whatever the prefix. An invalid user name is refused.
func TestACLLine(t *testing.T) {
	for _, c := range []struct{ prefix, keys string }{
		{"", `~*`},
		{"jobs/", `~jobs/* ~{jobs/*}:* ~leasehold:node`},
		{"a b", `~a?b* ~{a?b*}:* ~leasehold:node`},
		{"a*b", `"~a\x5c*b*" "~{a\x5c*b*}:*" ~leasehold:node`},
		{"grün", `"~gr\xc3\xbcn*" "~{gr\xc3\xbcn*}:*" ~leasehold:node`},
		{"\"\n", `"~\x22\x0a*" "~{\x22\x0a*}:*" ~leasehold:node`},
	} {
		line, err := redisadmin.ACL{User: "u", Prefix: c.prefix, Uses: redisadmin.ToShow}.Line()
		want := "ACL SETUSER u reset on >PASSWORD " + c.keys + " +evalsha +eval +get +lrange +hgetall +zrange +pttl +time +info +hscan"
		if err != nil || line != want {
			t.Errorf("%q: %s, %v\nwant %s", c.prefix, line, err, want)
		}
	}
	for _, user := range []string{"", "a b", "a\x00"} {
		if _, err := (redisadmin.ACL{User: user}).Rule(); err == nil {
			t.Errorf("user %q is accepted, want an error", user)
		}
	}
}

// A rule permits the locks with its prefix, and no others, even if the prefix has characters
// with a meaning in ACLs.
func TestACLOfOddPrefixes(t *testing.T) {
	r := ruled{t: t, servers: redistest.StartN(t, 3)}
	for _, prefix := range []string{"a b/", "a*[x]/", "grün/", `a\`, "", "{x}"} {
		rule, err := redisadmin.ACL{User: "locker", Prefix: prefix, Uses: redisadmin.ToLock}.Rule()
		if err != nil {
			t.Fatal(err)
		}
		r.apply(rule)
		s, err := r.open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request(prefix + "1")}); err != nil {
			t.Errorf("acquire with the prefix %q: %v", prefix, err)
		}
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("aax/1")}); prefix != "" && err == nil {
			t.Errorf("the rule for the prefix %q permits another name", prefix)
		}
		s.Close()
	}
}

// The rule in docs/redis.md is what the command prints.
func TestTheDocumentedRule(t *testing.T) {
	text, err := os.ReadFile("../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	line, err := redisadmin.ACL{User: "locker", Prefix: "jobs/", Uses: redisadmin.ToLock}.Line()
	if err != nil || !strings.Contains(string(text), "\n"+line+"\n") {
		t.Errorf("docs/redis.md does not have the rule (%v):\n%s", err, line)
	}
}
