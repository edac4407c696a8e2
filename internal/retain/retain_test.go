package retain

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var begin = time.Unix(1000, 0)

func at(d time.Duration) time.Time { return begin.Add(d) }

const ttl = 16 * time.Second // such a lease has certainly ended after 17 s

// due returns the releases that are to be sent now.
func due(l *List[string, string], now time.Duration) (all []string) {
	for _, e := range l.Due(at(now)) {
		all = append(all, e.What)
	}
	return all
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: due %q, want %q", what, got, want)
	}
}

// When the connection to a server is back, each retained release is sent to it once, the oldest
// first.
func TestRetainedReleasesAreSentOnce(t *testing.T) {
	l := &List[string, string]{Most: 10}
	l.Connected("run", at(0))
	l.Disconnected()
	l.Keep("a", "release a", ttl, at(1*time.Second))
	l.Keep("b", "release b", ttl, at(2*time.Second))
	l.Keep("a", "release a again", ttl, at(3*time.Second))
	l.Connected("run", at(4*time.Second))
	all := l.Due(at(4 * time.Second))
	if len(all) != 2 || all[0].What != "release b" || all[1].What != "release a again" {
		t.Fatalf("due %v, want the releases of b and then of a", all)
	}
	expect(t, "asked again at once", due(l, 4*time.Second))
	l.Answered(all[0], true, at(5*time.Second))
	if l.Len() != 1 {
		t.Errorf("%d entries after the first was executed, want 1", l.Len())
	}
	l.Disconnected()
	l.Connected("run", at(6*time.Second))
	expect(t, "after the connection broke", due(l, 6*time.Second), "release a again")
	l.Answered(all[1], true, at(7*time.Second))
	if l.Len() != 0 {
		t.Errorf("%d entries after all were executed, want none", l.Len())
	}
}

// If a server refuses a release, it is sent again, with growing pauses, until the lease has
// ended by itself.
func TestRefusedReleaseIsSentAgain(t *testing.T) {
	l := &List[string, string]{Most: 10}
	l.Connected("run", at(0))
	l.Disconnected()
	l.Keep("a", "release a", ttl, at(1*time.Second))
	l.Connected("run", at(2*time.Second))
	asked, last := 0, 2*time.Second
	for now := 2 * time.Second; now < time.Minute; now += 10 * time.Millisecond {
		for _, e := range l.Due(at(now)) {
			asked, last = asked+1, now
			l.Answered(e, false, at(now))
		}
	}
	if asked < 17 || asked > 30 || last < 18*time.Second || last >= 19*time.Second {
		t.Errorf("sent %d times, the last time after %v, want 17 to 30 times, until 18 to 19 s: a lease that began when the server was back has ended then", asked, last)
	}
	if l.Len() != 0 {
		t.Errorf("%d entries a minute later, want none", l.Len())
	}
}

// How long a release is retained depends on whether the server was restarted.
func TestReleaseIsRetainedUntil(t *testing.T) {
	for _, c := range []struct {
		name, before, after string
		back                time.Duration
		want                bool
	}{
		{"the same run, long after", "one", "one", time.Hour, true},
		{"the earlier run is not known", "", "two", time.Hour, true},
		{"the new run is not known", "one", "", time.Hour, true},
		{"another run, in time", "one", "two", 17 * time.Second, true},
		{"another run, after the lease has ended", "one", "two", 18 * time.Second, false},
	} {
		l := &List[string, string]{Most: 10}
		l.Connected(c.before, at(0))
		l.Disconnected()
		l.Keep("a", "release a", ttl, at(1*time.Second))
		l.Connected(c.after, at(c.back))
		if got := len(l.Due(at(c.back))) > 0; got != c.want {
			t.Errorf("%s: sent %v, want %v", c.name, got, c.want)
		}
	}
}

// If a server was never sent a request for a lease, it needs no release of it.
func TestUnsentLeaseNeedsNoRelease(t *testing.T) {
	l := &List[string, string]{Most: 3}
	l.Connected("run", at(0))
	l.Disconnected()
	for _, k := range []string{"a", "b", "c", "d"} {
		l.Untold(k)
	}
	l.Sending("b")
	for _, k := range []string{"a", "b", "c", "d", "e"} {
		if got, want := l.Keep(k, k, ttl, at(0)), k == "b" || k == "e"; got != want {
			t.Errorf("the release of %s is retained: %v, want %v", k, got, want)
		}
	}
	if l.Untold("e"); l.Len() != 1 {
		t.Errorf("%q are retained, want only b: the request for e failed after its release", l.All())
	}
}

// Next tells when to look again, and not that there is something to send as long as nothing is due.
func TestNextAfterALook(t *testing.T) {
	l := &List[string, string]{Most: 10}
	if next, ok := l.Next(); ok {
		t.Errorf("an empty list is due at %v", next)
	}
	l.Connected("run", at(0))
	l.Keep("a", "release a", ttl, at(0))
	l.Keep("b", "release b", ttl, at(time.Second))
	all := l.Due(at(firstPause))
	if next, ok := l.Next(); !ok || next != at(time.Second+firstPause) {
		t.Errorf("after the release of a was sent: due at %v, %v, want %v", next, ok, at(time.Second+firstPause))
	}
	l.Due(at(2 * time.Second))
	if next, ok := l.Next(); ok {
		t.Errorf("due at %v when all were sent", next)
	}
	l.Answered(all[0], false, at(2*time.Second))
	if next, ok := l.Next(); !ok || next != at(2*time.Second+firstPause) {
		t.Errorf("after a was refused: due at %v, %v, want %v", next, ok, at(2*time.Second+firstPause))
	}
}

// If too many releases are retained, the oldest are dropped.
func TestOverflow(t *testing.T) {
	l := &List[string, string]{Most: 3}
	for i := range 5 {
		l.Keep(fmt.Sprint(i), fmt.Sprint(i), ttl, at(0))
	}
	if got := l.All(); !slices.Equal(got, []string{"2", "3", "4"}) || l.Dropped() != 2 {
		t.Errorf("%q are retained and %d dropped, want the last 3 and 2", got, l.Dropped())
	}
}

// server executes the requests that it is sent. It can be stopped with unread requests, and be
// restarted.
type server struct {
	run    int
	has    map[int]time.Duration // its leases, with their ends
	unread []request             // requests that it was sent while it was stopped
}

type request struct {
	lease   int
	release bool
}

func (s *server) executes(r request, now time.Duration) {
	if r.release {
		delete(s.has, r.lease)
	} else {
		s.has[r.lease] = now + ttl
	}
}

// walk plays one history, and returns what is wrong with it, or "".
func walk(random *rand.Rand) (wrong string) {
	l := &List[int, int]{Most: 1000}
	s := &server{has: map[int]time.Duration{}}
	connected, refuses, stopped := true, false, false
	type flying struct {
		*Entry[int, int]
	}
	var flight []*flying
	held, next := map[int]bool{}, 0 // leases that are not released, and the number of the last one
	run := func() string { return fmt.Sprint("run ", s.run) }
	l.Connected(run(), at(0))
	released := map[int]time.Duration{}
	useless, outage, untold := 0, 1, map[int]int{}
	now := time.Duration(0)
	send := func() {
		if !connected || stopped {
			return
		}
		for _, e := range l.Due(at(now)) {
			if _, has := s.has[e.What]; !has && now > released[e.What]+2*ttl && s.run > 0 {
				useless++
			}
			switch {
			case refuses:
				l.Answered(e, false, at(now))
			case random.IntN(4) == 0: // the reply is lost
				if random.IntN(2) == 0 {
					s.executes(request{e.What, true}, now)
				}
				flight = append(flight, &flying{Entry: e})
			default:
				s.executes(request{e.What, true}, now)
				l.Answered(e, true, at(now))
			}
		}
	}
	for range 300 {
		now += time.Duration(random.Int64N(int64(200 * time.Millisecond)))
		for k, end := range s.has {
			if end <= now {
				delete(s.has, k)
			}
		}
		switch what := random.IntN(12); {
		case what < 3: // a lease is acquired
			next++
			held[next] = true
			switch {
			case !connected:
				l.Untold(next)
				untold[next] = outage
			case stopped:
				s.unread = append(s.unread, request{next, false})
			default:
				s.executes(request{next, false}, now)
			}
		case what < 6: // a lease is released
			// It is the smallest, and not the first that range yields, so that a seed always
			// gives the same history.
			for _, k := range slices.Sorted(maps.Keys(held)) {
				delete(held, k)
				released[k] = now
				switch {
				case !connected || stopped:
					if stopped && connected {
						s.unread = append(s.unread, request{k, true})
						// There is no reply, so it is retained when the connection is given up.
					}
					if l.Keep(k, k, ttl, at(now)) && !connected && untold[k] == outage {
						useless++
					}
				case refuses:
					l.Keep(k, k, ttl, at(now))
				default:
					s.executes(request{k, true}, now)
					l.Forget(k)
				}
				break
			}
		case what == 6 && connected:
			l.Disconnected()
			connected, flight = false, nil
		case what == 7 && !connected && !stopped:
			connected = true
			outage++
			for _, r := range s.unread { // they came on earlier connections
				s.executes(r, now)
			}
			s.unread = nil
			l.Connected(run(), at(now))
		case what == 8:
			refuses = !refuses
		case what == 9 && connected && !stopped: // its connection stays
			stopped = true
		case what == 10 && stopped:
			if connected {
				l.Disconnected()
				connected, flight = false, nil
			}
			stopped = false
		case what == 11 && random.IntN(3) == 0: // it is restarted, with the leases that are on its disk
			if connected {
				l.Disconnected()
				connected, flight = false, nil
			}
			s.run++
			s.unread, stopped = nil, false
			now += time.Duration(random.Int64N(int64(2 * ttl)))
		}
		send()
		if wrong := wrongNext(l); wrong != "" {
			return wrong
		}
	}
	// Soon after the server is well again, no released lease is left.
	refuses, stopped = false, false
	if !connected || len(flight) > 0 {
		if connected {
			l.Disconnected()
		}
		connected = true
		for _, r := range s.unread {
			s.executes(r, now)
		}
		s.unread = nil
		l.Connected(run(), at(now))
	}
	for range 100 {
		now += longestPause / 20
		for _, e := range l.Due(at(now)) {
			s.executes(request{e.What, true}, now)
			l.Answered(e, true, at(now))
		}
	}
	for k, end := range s.has {
		if !held[k] && end > now {
			return fmt.Sprintf("at %v, lease %d, which was released at %v, still lasts until %v", now, k, released[k], end)
		}
	}
	if l.Len() > 0 {
		return fmt.Sprintf("%d entries are left, want none", l.Len())
	}
	if useless > 0 {
		return fmt.Sprintf("%d releases were sent or retained that could have no effect", useless)
	}
	return ""
}

// wrongNext returns what is wrong with Next, or "": an entry becomes due before.
func wrongNext(l *List[int, int]) string {
	next, ok := l.Next()
	for at := l.entries.Front(); at != nil; at = at.Next() {
		if e := at.Value.(*Entry[int, int]); !e.underway && (!ok || e.again.Before(next)) {
			return fmt.Sprintf("the next entry is due at %v, %v, but entry %d at %v", next, ok, e.What, e.again)
		}
	}
	return ""
}

// explore takes many walks, and returns the first thing that is wrong, or "".
func explore() (wrong string) {
	for seed := range uint64(2000) {
		if wrong := walk(rand.New(rand.NewPCG(seed, 1))); wrong != "" {
			return fmt.Sprintf("seed %d: %s", seed, wrong)
		}
	}
	return ""
}

// However connections break and servers refuse, stop and restart, no released lease is left on
// a server that is reachable again, and no useless release is sent.
func TestNothingIsLeftBehind(t *testing.T) {
	if wrong := explore(); wrong != "" {
		t.Error(wrong)
	}
}
