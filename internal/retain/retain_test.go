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

const ttl = 16 * time.Second // and ends after 17

// due are what is to be sent now.
func due(l *List[string, string], now time.Duration) (all []string) {
	for _, e := range l.Due(at(now)) {
		all = append(all, e.What)
	}
	return all
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q is due, want %q", what, got, want)
	}
}

// A server goes away and comes back: it is told everything, oldest first, and once.
func TestTold(t *testing.T) {
	l := &List[string, string]{Most: 10}
	l.Connected("run", at(0))
	l.Disconnected()
	l.Keep("a", "release a", ttl, at(1*time.Second))
	l.Keep("b", "release b", ttl, at(2*time.Second))
	l.Keep("a", "release a again", ttl, at(3*time.Second))
	l.Connected("run", at(4*time.Second))
	all := l.Due(at(4 * time.Second))
	if len(all) != 2 || all[0].What != "release b" || all[1].What != "release a again" {
		t.Fatalf("due: %v", all)
	}
	expect(t, "at once again", due(l, 4*time.Second))
	l.Answered(all[0], true, at(5*time.Second))
	if l.Len() != 1 {
		t.Errorf("%d entries after the first was executed, want 1", l.Len())
	}
	l.Disconnected()
	l.Connected("run", at(6*time.Second))
	expect(t, "after the connection broke", due(l, 6*time.Second), "release a again")
	l.Answered(all[1], true, at(7*time.Second))
	if l.Len() != 0 {
		t.Errorf("%d entries after all were executed", l.Len())
	}
}

// A server that answers with errors is asked again, with growing pauses, until the
// lease has ended by itself.
func TestRefused(t *testing.T) {
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
		t.Errorf("asked %d times, last after %v: want about 20 times, until a lease from when the server was back is over at 19 s", asked, last)
	}
	if l.Len() != 0 {
		t.Error("it is retained for ever")
	}
}

// How long a release is of use depends on whether the server was restarted.
func TestUntil(t *testing.T) {
	for _, c := range []struct {
		name, before, after string
		back                time.Duration
		want                bool
	}{
		{"the same run, long after", "one", "one", time.Hour, true},
		{"the run is not known", "", "two", time.Hour, true},
		{"nor is the new one", "one", "", time.Hour, true},
		{"another run, in time", "one", "two", 17 * time.Second, true},
		{"another run, when the lease is over", "one", "two", 18 * time.Second, false},
	} {
		l := &List[string, string]{Most: 10}
		l.Connected(c.before, at(0))
		l.Disconnected()
		l.Keep("a", "release a", ttl, at(1*time.Second))
		l.Connected(c.after, at(c.back))
		if got := len(l.Due(at(c.back))) > 0; got != c.want {
			t.Errorf("%s: sent: %v, want %v", c.name, got, c.want)
		}
	}
}

// A lease of which the server never got a request needs no release there.
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
			t.Errorf("%s is retained: %v, want %v", k, got, want)
		}
	}
	if l.Untold("e"); l.Len() != 1 {
		t.Errorf("%q are retained, want b only: the request for e failed after its release", l.All())
	}
}

func TestOverflow(t *testing.T) {
	l := &List[string, string]{Most: 3}
	for i := range 5 {
		l.Keep(fmt.Sprint(i), fmt.Sprint(i), ttl, at(0))
	}
	if got := l.All(); !slices.Equal(got, []string{"2", "3", "4"}) || l.Dropped() != 2 {
		t.Errorf("%q are retained and %d dropped", got, l.Dropped())
	}
}

// server is what the list is about: it executes what is sent to it, refuses or loses
// it, is stopped with requests unread, and is restarted.
type server struct {
	run    int
	has    map[int]time.Duration // leases, by when they end
	unread []request             // of a stopped server
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

// walk plays one history, and says what is wrong with it; empty: nothing.
func walk(random *rand.Rand) (wrong string) {
	l := &List[int, int]{Most: 1000}
	s := &server{has: map[int]time.Duration{}}
	connected, refuses, stopped := true, false, false
	type flying struct {
		*Entry[int, int]
	}
	var flight []*flying
	held, next := map[int]bool{}, 0 // leases that are not released, and were asked for
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
			case random.IntN(4) == 0: // executed or not, nobody hears
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
		case what < 3: // a lease is taken
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
		case what < 6: // and released
			// The smallest, and not the first that range finds: a seed is one history.
			for _, k := range slices.Sorted(maps.Keys(held)) {
				delete(held, k)
				released[k] = now
				switch {
				case !connected || stopped:
					if stopped && connected {
						s.unread = append(s.unread, request{k, true})
						// It is not answered: it is retained when the connection is given up.
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
			for _, r := range s.unread { // of the connections before
				s.executes(r, now)
			}
			s.unread = nil
			l.Connected(run(), at(now))
		case what == 8:
			refuses = !refuses
		case what == 9 && connected && !stopped: // its connection is lost as well
			stopped = true
		case what == 10 && stopped:
			if connected {
				l.Disconnected()
				connected, flight = false, nil
			}
			stopped = false
		case what == 11 && random.IntN(3) == 0: // restarted, with what it has on its disk
			if connected {
				l.Disconnected()
				connected, flight = false, nil
			}
			s.run++
			s.unread, stopped = nil, false
			now += time.Duration(random.Int64N(int64(2 * ttl)))
		}
		send()
	}
	// It all ends well: soon nothing is left of what was released.
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
			return fmt.Sprintf("lease %d, released at %v, is there until %v, and it is %v", k, released[k], end, now)
		}
	}
	if l.Len() > 0 {
		return fmt.Sprintf("%d entries are left", l.Len())
	}
	if useless > 0 {
		return "something was sent, or retained, that could have no effect"
	}
	return ""
}

// explore walks until something is wrong, or many times.
func explore() (wrong string) {
	for seed := range uint64(2000) {
		if wrong := walk(rand.New(rand.NewPCG(seed, 1))); wrong != "" {
			return fmt.Sprintf("seed %d: %s", seed, wrong)
		}
	}
	return ""
}

func TestNothingIsLeftBehind(t *testing.T) {
	if wrong := explore(); wrong != "" {
		t.Error(wrong)
	}
}
