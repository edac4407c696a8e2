package redisstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// failing returns a change of a script's text with which its n-th command fails. If it lasts, all
// later commands of that name fail as well, as those of a user that loses a right do. The server
// notes in the key "failed" that a command did.
func failing(n int, lasts bool) func(text string) string {
	return func(text string) string {
		return fmt.Sprintf(`local real, count, barred = redis, 0, nil
local function fails(name)
  count = count + 1
  if count == %d then
    barred = name
    real.call('SET', 'failed', name)
  elseif not (%v and name == barred) then
    return false
  end
  return count >= %d
end
local redis = {
  call = function(...) if fails((...)) then error({err = 'ERR no ' .. (...)}) end return real.call(...) end,
  pcall = function(...) if fails((...)) then return {err = 'ERR no ' .. (...)} end return real.pcall(...) end,
}
`, n, lasts, n) + text
	}
}

// A failure is one step that is made to fail, with what came before and the owner that asks again afterwards.
type failure struct {
	limit  int64 // how much can be held at once
	before []driver.Question
	step   func(e script.Encoder) *script.Command
	others []store.Lease // that wait, in order
	gone   []string      // those of them whose process is gone
}

// failures returns the steps that can hand a lock on, or grant it, by name.
func failures() map[string]failure {
	lease := func(owner string, k store.Kind, weight int64) store.Lease {
		return store.Lease{Name: "stock", Owner: owner, TTL: time.Minute, Kind: k, Weight: weight}
	}
	asks := func(leases ...store.Lease) (all []driver.Question) {
		for i, l := range leases {
			all = append(all, driver.Question{Op: quorum.Acquire, Lease: l, Waits: i > 0, Stamp: clock.Instant(i + 1)})
		}
		return all
	}
	releases := func(l store.Lease) func(script.Encoder) *script.Command {
		return func(e script.Encoder) *script.Command {
			return e.Encode(driver.Question{Op: quorum.Release, Lease: l, Tombstone: true, Renewed: true}, nil)
		}
	}
	mutex, three, rw, all := store.Kind{Limit: 1}, store.Semaphore(3), store.ReadWrite, int64(store.ReadWriteLimit)
	m := []store.Lease{lease("ann", mutex, 1), lease("bob", mutex, 1), lease("kim", mutex, 1)}
	heavy := []store.Lease{lease("ann", three, 3), lease("bob", three, 1), lease("kim", three, 2), lease("zoe", three, 1)}
	readers := []store.Lease{lease("ann", rw, all), lease("bob", rw, 1), lease("kim", rw, 1), lease("zoe", rw, all)}
	writers := []store.Lease{lease("ann", rw, 1), lease("bob", rw, all), lease("kim", rw, 1)}
	return map[string]failure{
		"a mutex is acquired":           {1, nil, func(e script.Encoder) *script.Command { return e.Encode(asks(m[0])[0], nil) }, m[1:2], nil},
		"a mutex is released":           {1, asks(m...), releases(m[0]), m[1:], nil},
		"a mutex is released to nobody": {1, asks(m...), releases(m[0]), m[1:], []string{"bob"}},
		"a mutex is passed on by one that waits": {1, asks(m[:2]...), func(e script.Encoder) *script.Command {
			next := driver.Question{Op: quorum.Acquire, Lease: m[2], Waits: true, IfHeld: true, Stamp: 9}
			return e.Encode(driver.Question{Op: quorum.Release, Lease: m[0], Next: &next}, nil)
		}, m[1:], nil},
		"a permit is taken":         {3, nil, func(e script.Encoder) *script.Command { return e.Encode(asks(heavy[3])[0], nil) }, heavy[1:2], nil},
		"a second permit is taken":  {3, asks(heavy[1]), func(e script.Encoder) *script.Command { return e.Encode(asks(heavy[3])[0], nil) }, heavy[2:3], nil},
		"permits are released":      {3, asks(heavy...), releases(heavy[0]), heavy[1:], nil},
		"permits go to nobody":      {3, asks(heavy...), releases(heavy[0]), heavy[1:], []string{"bob", "kim"}},
		"a writer makes way":        {all, asks(readers...), releases(readers[0]), readers[1:], []string{"kim"}},
		"a reader makes way":        {all, asks(writers...), releases(writers[0]), writers[1:], nil},
		"a writer becomes a reader": {all, asks(readers...), func(e script.Encoder) *script.Command { return e.Downgrade(readers[0]) }, readers[1:], nil},
		"a reader is renewed": {all, asks(writers[0]), func(e script.Encoder) *script.Command {
			l := writers[0]
			l.TTL *= 2
			return e.Encode(driver.Question{Op: quorum.Extend, Lease: l}, nil)
		}, writers[1:2], nil},
	}
}

// Whatever command of a script fails, nobody is told of a grant that is not written, no more is held
// than can be, no token is granted twice, and waiters that ask again get the lock.
func TestScriptsFailAtEachCommand(t *testing.T) {
	t.Parallel()
	n := onRedis(t)
	e := listening(t, n)
	for name, f := range failures() {
		t.Run(name, func(t *testing.T) {
			for _, lasts := range []bool{false, true} {
				at := 1
				for ; f.failsAt(t, e, at, lasts); at++ {
				}
				if at < 3 {
					t.Errorf("only %d commands were made to fail", at-1)
				}
			}
		})
	}
}

// failsAt lets the n-th command fail. It reports whether there is one.
func (f failure) failsAt(t *testing.T, e *ears, n int, lasts bool) bool {
	t.Helper()
	what := fmt.Sprintf("command %d fails (lasting: %v)", n, lasts)
	if err := e.reset(clock.Instant(time.Now().UnixNano())); err != nil {
		t.Fatal(err)
	}
	for _, l := range f.others {
		if !slices.Contains(f.gone, l.Owner) {
			if err := e.hear([]string{l.Owner}); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.s.Wall = time.Now
	tokens := map[string]uint64{} // that were granted, by owner
	ask := func(q driver.Question) driver.Reply {
		e.s.Channel = script.ChannelBegin + q.Lease.Owner
		enc := e.s.Encoder()
		c := enc.Encode(q, nil)
		v, err := e.scripted.run(e.byText(c))
		if err != nil {
			t.Fatal(err)
		}
		got := script.ReplyTo(v[0]).Answer(c.Script)
		if got.Kind == quorum.Yes && got.Token > 0 {
			tokens[q.Lease.Owner] = got.Token
		}
		return got
	}
	for _, q := range f.before {
		ask(q)
	}
	was := maxToken(tokens)
	e.change = failing(n, lasts)
	enc := e.s.Encoder()
	step := f.step(enc)
	if _, err := e.wire.Exchange(e.byText(step).Bytes); err != nil { // whatever it answers
		t.Fatal(err)
	}
	e.change = nil
	if e.text(t, "EXISTS", "failed") == "0" {
		return false
	}
	held := func() map[string]store.Holding {
		v, err := e.scripted.run(e.byText(e.s.InspectCommand("stock")))
		if err != nil {
			t.Fatal(err)
		}
		r := script.ReplyTo(v[0])
		all, used := map[string]store.Holding{}, int64(0)
		if record := r.Record(); record != nil {
			for _, h := range record.Holders {
				all[h.Holder.Owner] = h.Holding
				used += h.Weight
			}
		} else if said, token, _ := r.Look(); said.Outcome == store.Taken {
			all[said.Holder.Owner] = store.Holding{Holder: said.Holder, Token: token, Weight: 1}
			used = 1
		}
		if used > f.limit {
			t.Fatalf("%s: %d of %d are held: %v", what, used, f.limit, all)
		}
		return all
	}
	has, pushes := held(), []string(nil)
	pushes, err := e.messages()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range pushes {
		p, ok := script.ParsePush(m)
		if !ok || !p.Granted {
			continue
		}
		if h, ok := has[p.Owner]; !ok || uint64(h.Token) != p.Token {
			t.Errorf("%s: %s is told of a grant, and the server has %v", what, p.Owner, has)
		}
		if p.Token <= was && f.limit == 1 {
			t.Errorf("%s: %s was granted the token %d, and an earlier owner had %d", what, p.Owner, p.Token, was)
		}
	}
	// The step is tried again, and everybody asks again, also those whose connection was gone. Each in
	// turn has the lock, and leaves.
	if _, err := e.scripted.run(e.byText(step)); err != nil {
		t.Fatal(err)
	}
	waiting := slices.Clone(f.others)
	for round := 0; len(waiting) > 0; round++ {
		if round > 2*len(f.others) {
			t.Fatalf("%s: %v are never granted the lock; it is held by %v", what, waiting, held())
		}
		var left []store.Lease
		for _, l := range waiting {
			if got := ask(driver.Question{Op: quorum.Acquire, Lease: l, Waits: true, Again: true, Stamp: 99}); got.Kind != quorum.Yes {
				left = append(left, l)
			} else if has := held(); has[l.Owner].Holder.Owner == "" {
				t.Fatalf("%s: %s was granted the lock, and the server has %v", what, l.Owner, has)
			} else if got.Token <= was && l.Kind.IsMutex() {
				t.Fatalf("%s: %s was granted the token %d, and an earlier owner had %d", what, l.Owner, got.Token, was)
			}
		}
		for owner, h := range held() { // the first holders leave
			if strings.HasPrefix(owner, "(") {
				continue
			}
			k := f.others[0].Kind
			ask(driver.Question{Op: quorum.Release, Lease: store.Lease{Name: "stock", Owner: owner, TTL: time.Minute, Kind: k, Weight: h.Weight, Meta: ""}})
		}
		waiting = left
	}
	for owner, h := range held() {
		ask(driver.Question{Op: quorum.Release, Lease: store.Lease{Name: "stock", Owner: owner, TTL: time.Minute, Kind: f.others[0].Kind, Weight: h.Weight}})
	}
	if said := e.text(t, "SET", "stock", "theirs", "NX"); said != "OK" {
		t.Errorf("%s: when all have left, another client that sets the lock is told %s", what, said)
	}
	return true
}

func maxToken(tokens map[string]uint64) (most uint64) {
	for _, token := range tokens {
		most = max(most, token)
	}
	return most
}
