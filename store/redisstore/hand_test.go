package redisstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// ask sends questions to the server, none of which may fail.
func (n *scripted) ask(t *testing.T, questions ...driver.Question) (all []driver.Reply) {
	t.Helper()
	var commands []*script.Command
	for _, q := range questions {
		n.s.Wall, n.s.Channel = time.Now, script.ChannelBegin+"nobody"
		c := n.s.Encode(q, nil)
		asks := n.byText(c)
		asks.Bytes = n.wire.fill(c, asks.Bytes) // so that nothing is pushed
		commands = append(commands, asks)
	}
	replies, err := n.run(commands...)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range replies {
		all = append(all, script.ReplyTo(v).Answer(script.Acquire))
	}
	return all
}

// holders returns what the server has of a lock called stock.
func (n *scripted) holders(t testing.TB) string {
	t.Helper()
	return n.text(t, "GET", "stock") + " " + n.text(t, "HGETALL", "{stock}:held")
}

// text returns the server's reply to one command.
func (n *scripted) text(t testing.TB, words ...string) string {
	t.Helper()
	said, err := n.run(script.NewCommand(words...))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Trim(said[0].String(), `"`)
}

func lining(name string, require store.Class) store.Lease {
	return store.Lease{Name: name, Owner: store.NewOwnerAt(time.Now()), TTL: 30 * time.Second, Require: require}
}

// writing is lining for a writer of a lock that several can hold.
func writing(name string, require store.Class) store.Lease {
	r := lining(name, require)
	r.Kind, r.Weight = store.ReadWrite, store.ReadWriteLimit
	return r
}

// leasesOf has leases that exclude each other, of a mutex and of a lock that several can
// hold.
var leasesOf = map[string]func(string, store.Class) store.Lease{"mutex": lining, "read-write lock": writing}

// A server in quarantine hands no lock on. The queue stays until the server grants again,
// and no place is given behind a holder that does not exist.
func TestNoHandOffInQuarantine(t *testing.T) {
	for mark, c := range map[string]struct {
		mark string
		held bool
	}{
		"open":          {openMark, true},
		"quarantine":    {markOf(func(m *nodemark.Mark) { m.Open, m.Opens, m.Why = false, 1, "restarted" }), false},
		"other list":    {markOf(func(m *nodemark.Mark) { m.Print, m.List = "0123456789ab", "a,b,c" }), false},
		"other run":     {markOf(func(m *nodemark.Mark) { m.Run = strings.Repeat("b", 40) }), false},
		"other version": {"2 open", false},
		"emptied":       {"", false},
	} {
		for kind, lease := range leasesOf {
			for _, returns := range []bool{false, true} {
				if returns && kind != "mutex" {
					continue // only a mutex has places that are made with a release
				}
				t.Run(fmt.Sprintf("%s, %s, returns: %v", mark, kind, returns), func(t *testing.T) {
					checkQuarantine(t, lease, c.mark, c.held, returns)
				})
			}
		}
	}
}

// checkQuarantine releases a lock with a waiter on a server with this mark. The waiter is to
// get it only if held. The release asks for a place for the next wait if returns.
func checkQuarantine(t *testing.T, lease func(string, store.Class) store.Lease, mark string, held, returns bool) {
	n := onRedis(t)
	n.s.Membership.Fingerprint, n.wire.run = "ba9876543210", strings.Repeat("a", script.RunPrint)
	n.text(t, "SET", script.MarkKey, openMark)
	first, next, back := lease("stock", store.CrashSafe), lease("stock", store.CrashSafe), lease("stock", store.CrashSafe)
	n.ask(t, driver.Question{Op: quorum.Acquire, Lease: first}, driver.Question{Op: quorum.Acquire, Lease: next, Waits: true})
	if n.text(t, "DEL", script.MarkKey); mark != "" {
		n.text(t, "SET", script.MarkKey, mark)
	}
	queue := n.text(t, "LRANGE", "{stock}:line", "0", "-1")
	q := driver.Question{Op: quorum.Release, Lease: first}
	if returns {
		q.Next = &driver.Question{Op: quorum.Acquire, Lease: back, Waits: true, IfHeld: true}
	}
	n.ask(t, q)
	if got := strings.Contains(n.holders(t), next.Owner); got != held {
		t.Errorf("the lock was handed on: %v, want %v", got, held)
	}
	if left := n.text(t, "LRANGE", "{stock}:line", "0", "-1"); !held && left != queue {
		t.Errorf("the queue was %s and is %s, want no change", queue, left)
	}
	if has := n.text(t, "EXISTS", "{stock}:place:"+back.Owner) == "1"; has != (returns && held) {
		t.Errorf("the client that returns has a place: %v, want %v", has, returns && held)
	}
	if other := n.ask(t, driver.Question{Op: quorum.Acquire, Lease: lease("stock", store.CrashSafe)}); other[0].Kind == quorum.Yes {
		t.Error("granted to another client")
	}
	n.ask(t, driver.Question{Op: quorum.Release, Lease: back}, driver.Question{Op: quorum.Release, Lease: next})
	if left := n.text(t, "EXISTS", "{stock}:line", "{stock}:place:"+next.Owner, "{stock}:place:"+back.Owner); left != "0" {
		t.Error("a waiter that has left still has a place")
	}
}

// A server hands a lock to no client whose membership it does not belong to, even if the
// releasing client has both memberships, and drops the place of that client.
func TestNoHandOffToAnotherMembership(t *testing.T) {
	const one, other, both = "ba9876543210", "0123456789ab", "ba9876543210>0123456789ab"
	for _, c := range []struct {
		mark, waiter string
		handed       bool
	}{
		{one, one, true}, {one, other, false}, {one, both, true},
		{both, one, false}, {both, other, false}, {both, both, true},
		{other, one, false}, {other, other, true}, {other, both, true},
		{nodemark.Unknown, one, true},
	} {
		for kind, lease := range leasesOf {
			n := onRedis(t)
			n.text(t, "SET", script.MarkKey, markOf(func(m *nodemark.Mark) { m.Print = nodemark.Unknown }))
			held, next := lease("stock", store.CrashSafe), lease("stock", store.CrashSafe)
			n.s.Membership.Fingerprint = c.waiter
			n.ask(t, driver.Question{Op: quorum.Acquire, Lease: held}, driver.Question{Op: quorum.Acquire, Lease: next, Waits: true})
			n.text(t, "SET", script.MarkKey, markOf(func(m *nodemark.Mark) { m.Print = c.mark }))
			n.s.Membership.Fingerprint = both
			n.ask(t, driver.Question{Op: quorum.Release, Lease: held})
			if got := strings.Contains(n.holders(t), next.Owner); got != c.handed {
				t.Errorf("a server of %s hands a %s on to a client of %s: %v, want %v", c.mark, kind, c.waiter, got, c.handed)
			}
			if n.text(t, "EXISTS", "{stock}:line", "{stock}:place:"+next.Owner) != "0" {
				t.Errorf("a server of %s keeps a place for a %s of a client of %s", c.mark, kind, c.waiter)
			}
		}
	}
}

// A waiter that requires a check of the mark is not handed the lock by a release that
// does not check it.
func TestGuardedPlaceNeedsACheckedRelease(t *testing.T) {
	for kind, lease := range leasesOf {
		n := onRedis(t)
		n.s.Size = 1
		held, next := lease("stock", 0), lease("stock", store.CrashSafe)
		n.ask(t, driver.Question{Op: quorum.Acquire, Lease: held}, driver.Question{Op: quorum.Acquire, Lease: next, Waits: true}, driver.Question{Op: quorum.Release, Lease: held})
		if said := n.text(t, "GET", "stock"); said != "nil" {
			t.Errorf("%s: the lock has the value %s, want none", kind, said)
		}
		if said := n.text(t, "EXISTS", "{stock}:line"); said != "0" {
			t.Errorf("%s: the waiter that was notified that the lock is free still has a place", kind)
		}
	}
}

// The same holds for a place that was taken by a rejoin that did not check the mark.
func TestGuardedPlaceOfRejoinNeedsACheckedRelease(t *testing.T) {
	n := onRedis(t)
	n.s.Size = 1
	held, first, back := lining("stock", 0), lining("stock", 0), lining("stock", store.CrashSafe)
	n.ask(t, driver.Question{Op: quorum.Acquire, Lease: held}, driver.Question{Op: quorum.Acquire, Lease: first, Waits: true},
		driver.Question{Op: quorum.Release, Lease: held, Next: &driver.Question{Op: quorum.Acquire, Lease: back, Waits: true, IfHeld: true}})
	if said := n.text(t, "EXISTS", "{stock}:place:"+back.Owner); said != "1" {
		t.Fatal("a waiter that returns has no place")
	}
	n.ask(t, driver.Question{Op: quorum.Release, Lease: first})
	if said := n.text(t, "GET", "stock"); said != "nil" {
		t.Errorf("the lock has the value %s, want none", said)
	}
}

// The places of dead waiters are removed while the lock is held, so that the queue does
// not grow.
func TestDeadPlacesAreCleared(t *testing.T) {
	n := onRedis(t)
	held := lining("stock", 0)
	n.ask(t, driver.Question{Op: quorum.Acquire, Lease: held}, driver.Question{Op: quorum.Acquire, Lease: lining("stock", 0), Waits: true})
	for range 100 {
		var some []driver.Question
		for range 30 {
			r := lining("stock", 0)
			r.TTL = time.Millisecond
			some = append(some, driver.Question{Op: quorum.Acquire, Lease: r, Waits: true})
		}
		n.ask(t, some...)
	}
	if entries, err := strconv.Atoi(n.text(t, "LLEN", "{stock}:line")); err != nil || entries > 600 {
		t.Errorf("%d entries of 3000 that are dead (%v), want at most 600", entries, err)
	}
	n.ask(t, driver.Question{Op: quorum.Release, Lease: held})
}

// If the queue's key holds something else, locks work, and a waiter gets an error.
func TestKeyThatIsNoQueue(t *testing.T) {
	for name, c := range map[string]struct {
		words         []string
		waits, handed bool
	}{
		"a hash":                                 {[]string{"HSET", "{stock}:line", "a", "b"}, false, false},
		"text":                                   {[]string{"SET", "{stock}:line", "1234567890123456 ann"}, false, false},
		"other words":                            {[]string{"RPUSH", "{stock}:line", "what is this", "0 x", ""}, true, true},
		"for ever":                               {[]string{"RPUSH", "{stock}:line", "1234567890123456 ann"}, true, true},
		"other words at the record of the queue": {[]string{"SET", "{stock}:waits", "what is this"}, true, true},
		"a hash at the record of the queue":      {[]string{"HSET", "{stock}:waits", "a", "b"}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := onRedis(t)
			n.text(t, c.words...)
			held, next := lining("stock", 0), lining("stock", 0)
			for i, a := range n.ask(t, driver.Question{Op: quorum.Acquire, Lease: held, Waits: true}, driver.Question{Op: quorum.Acquire, Lease: held, Waits: true, Again: true}) {
				if a.Kind != quorum.Yes {
					t.Errorf("acquire %d: %+v, want the lock", i, a)
				}
			}
			if !c.waits {
				_, err := n.run(n.byText(n.s.Encode(driver.Question{Op: quorum.Acquire, Lease: next, Waits: true}, nil)))
				if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
					t.Errorf("wait: %v, want WRONGTYPE", err)
				}
			} else if a := n.ask(t, driver.Question{Op: quorum.Acquire, Lease: next, Waits: true})[0]; a.Position == 0 {
				t.Errorf("wait: %+v, want a position", a)
			}
			n.releases(t, held)
			if got := n.text(t, "GET", "stock") == next.Owner; got != c.handed {
				t.Errorf("the lock was handed on: %v, want %v", got, c.handed)
			}
		})
	}
}

// releases releases a lease that is held.
func (n *scripted) releases(t *testing.T, held store.Lease) {
	t.Helper()
	said, err := n.run(n.byText(n.s.Encode(driver.Question{Op: quorum.Release, Lease: held}, nil)))
	if err != nil || script.ReplyTo(said[0]).Answer(script.Release).Kind != quorum.Yes {
		t.Errorf("release: %v, %v, want that it is done", said, err)
	}
}

// A release works if the keys of a queue were damaged while a waiter was in it: the lock is
// free or goes to the waiter. A waiter that asks again gets its place back.
func TestDamagedQueue(t *testing.T) {
	for name, c := range map[string]struct {
		words  []string // a command with the key as its second word
		handed bool
	}{
		"the queue is a hash":               {[]string{"HSET", "{stock}:line", "a", "b"}, false},
		"the queue is text":                 {[]string{"SET", "{stock}:line", "x"}, false},
		"the record of the queue is a hash": {[]string{"HSET", "{stock}:waits", "a", "b"}, false},
		"the record of the queue is text":   {[]string{"SET", "{stock}:waits", "x"}, true},
		"the counter is a hash":             {[]string{"HSET", "{stock}:token", "a", "b"}, false},
		"the place is a hash":               {[]string{"HSET", "{stock}:place:OWNER", "a", "b"}, false},
		"the place is text":                 {[]string{"SET", "{stock}:place:OWNER", "x"}, false},
		"the place is longer text":          {[]string{"SET", "{stock}:place:OWNER", strings.Repeat("x ", 40)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := onRedis(t)
			held, next := lining("stock", 0), lining("stock", 0)
			n.ask(t, driver.Question{Op: quorum.Acquire, Lease: held}, driver.Question{Op: quorum.Acquire, Lease: next, Waits: true})
			words := slices.Clone(c.words)
			words[1] = strings.Replace(words[1], "OWNER", next.Owner, 1)
			n.text(t, "DEL", words[1])
			n.text(t, words...)
			n.releases(t, held)
			want := "nil"
			if c.handed {
				want = next.Owner
			}
			if got := n.text(t, "GET", "stock"); got != want {
				t.Errorf("the lock has the value %s, want %s", got, want)
			}
			if !strings.HasPrefix(words[1], "{stock}:place:") {
				return
			}
			// A waiter that asks again gets its place back.
			n.ask(t, driver.Question{Op: quorum.Acquire, Lease: held})
			n.text(t, "DEL", words[1])
			n.text(t, words...)
			n.ask(t, driver.Question{Op: quorum.Acquire, Lease: next, Waits: true, Again: true})
			n.releases(t, held)
			if got := n.text(t, "GET", "stock"); got != next.Owner {
				t.Errorf("the lock has the value %s, want %s, which has asked again", got, next.Owner)
			}
		})
	}
}

// A long queue stays in order however waiters arrive. Each waiter gets its position, and dead
// waiters are found wherever they are.
func TestLongQueue(t *testing.T) {
	const all = 300
	n := onRedis(t)
	held := lining("stock", 0)
	n.ask(t, driver.Question{Op: quorum.Acquire, Lease: held})
	begin, rnd := time.Now().Add(-200*time.Millisecond), rand.New(rand.NewPCG(1, 2))
	var queue []store.Lease // the expected queue
	stands := func(r store.Lease, again bool) {
		t.Helper()
		a := n.ask(t, driver.Question{Op: quorum.Acquire, Lease: r, Waits: true, Again: again})[0]
		if want := slices.IndexFunc(queue, func(o store.Lease) bool { return o.Owner == r.Owner }) + 1; a.Position != want {
			t.Fatalf("position %d, want %d of %d", a.Position, want, len(queue))
		}
	}
	for i := range all {
		r := lining("stock", 0)
		if i < all/2 { // some arrive together
			r.Owner = store.NewOwnerAt(begin.Add(time.Duration(rnd.IntN(all)) * time.Millisecond))
		}
		if i%3 == 0 {
			r.TTL = 5 * time.Minute
		}
		at := slices.IndexFunc(queue, func(o store.Lease) bool { return store.Rank(o.Owner) > store.Rank(r.Owner) })
		if at < 0 {
			at = len(queue)
		}
		queue = slices.Insert(queue, at, r)
		stands(r, i < all/2) // asking again, since ranks from a while ago are not those of new waiters
	}
	for _, i := range rnd.Perm(all) {
		stands(queue[i], true)
	}
	// A waiter that gives up is removed, wherever it was in the queue.
	for range 50 {
		i := rnd.IntN(len(queue))
		n.ask(t, driver.Question{Op: quorum.Release, Lease: queue[i]})
		queue = slices.Delete(queue, i, i+1)
	}
	for _, i := range rnd.Perm(len(queue)) {
		stands(queue[i], true)
	}
	if err := n.Pass(time.Minute); err != nil { // which only every third survives
		t.Fatal(err)
	}
	n.text(t, "SET", "stock", held.Owner, "PX", "60000")
	queue = slices.DeleteFunc(queue, func(r store.Lease) bool { return r.TTL < time.Minute })
	for range all / 64 { // each finds a part of them
		n.ask(t, driver.Question{Op: quorum.Acquire, Lease: queue[len(queue)-1], Waits: true, Again: true})
	}
	for _, i := range rnd.Perm(len(queue)) {
		stands(queue[i], true)
	}
	if length := n.text(t, "LLEN", "{stock}:line"); length != strconv.Itoa(len(queue)) {
		t.Errorf("%s in the queue, want %d", length, len(queue))
	}
	for _, r := range append([]store.Lease{held}, queue...) {
		if got := n.text(t, "GET", "stock"); got != r.Owner {
			t.Fatalf("the lock has the value %s, want %s", got, r.Owner)
		}
		n.releases(t, r)
	}
	if left := n.text(t, "KEYS", "*"); left != `["{stock}:token"]` {
		t.Errorf("the keys left are %s, want the counter only", left)
	}
}
