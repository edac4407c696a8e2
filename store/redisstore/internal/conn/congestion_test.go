package conn

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Calls are held back while those in flight are enough work for the server, and no longer than they
// are fewer than these or fill a list.
func TestHoldsBack(t *testing.T) {
	for _, c := range []struct {
		quickest           time.Duration
		inFlight, enqueued int
		want               bool
	}{
		{0, 100, 1, false}, // nothing is known of the server
		{20 * time.Microsecond, 5, 1, false},
		{20 * time.Microsecond, 6, 1, true},
		{20 * time.Microsecond, 6, 5, true},
		{20 * time.Microsecond, 6, 6, false},
		{20 * time.Microsecond, 100, enough - 1, true},
		{20 * time.Microsecond, 100, enough, false},
		{time.Millisecond, 250, 1, false},
		{time.Millisecond, 251, 1, true},
	} {
		b := congestion{quickest: c.quickest}
		if got := b.holdsBack(c.inFlight, c.enqueued); got != c.want {
			t.Errorf("with answers in %v at best, %d calls in flight and %d enqueued, it holds back: %v, want %v", c.quickest, c.inFlight, c.enqueued, got, c.want)
		}
	}
}

// unsent requires that so many calls wait to be sent.
func (a *asker) unsent(t *testing.T, want int) {
	t.Helper()
	synctest.Wait()
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if a.Waiting.n != want {
		t.Errorf("%d calls were not sent yet, want %d", a.Waiting.n, want)
	}
}

// nearby is how quickly the server of inBacklog answers at best.
const nearby = perCall * 3 / 2

// inBacklog calls f with a server nearby that has four calls to answer.
func inBacklog(t *testing.T, f func(t *testing.T, s *server, a *asker)) {
	inBubble(t, func(t *testing.T, s *server, a *asker) {
		s.begin(a)
		quick := a.put("+QUICK\r\n")
		s.got("+QUICK\r\n")
		time.Sleep(nearby)
		s.says("+OK\r\n")
		<-quick
		for range 4 {
			a.put("+MORE\r\n")
		}
		s.got("+MORE\r\n+MORE\r\n+MORE\r\n+MORE\r\n")
		f(t, s, a)
	})
}

// Calls to a server with a backlog wait until they are as many as those in flight.
func TestCallsGatherForAServerWithABacklog(t *testing.T) {
	inBacklog(t, func(t *testing.T, s *server, a *asker) {
		for range 3 {
			a.put("+HELD\r\n")
		}
		a.unsent(t, 3)
		a.put("+HELD\r\n")
		s.got("+HELD\r\n+HELD\r\n+HELD\r\n+HELD\r\n")
	})
}

// Calls that are held back are sent when as many are in flight as wait.
func TestAnswersLetCallsGo(t *testing.T) {
	inBacklog(t, func(t *testing.T, s *server, a *asker) {
		for range 2 {
			a.put("+HELD\r\n")
		}
		time.Sleep(nearby)
		s.says("+OK\r\n")
		a.unsent(t, 2)
		s.says("+OK\r\n")
		s.got("+HELD\r\n+HELD\r\n")
	})
}

// Calls are let go once all that has arrived is handled, also if a push is last.
func TestCallsGoAfterAllThatHasArrived(t *testing.T) {
	for _, last := range []string{"", ">2\r\n+message\r\n+x\r\n"} {
		inBacklog(t, func(t *testing.T, s *server, a *asker) {
			for range 2 {
				a.put("+HELD\r\n")
			}
			time.Sleep(nearby)
			a.unsent(t, 2)
			s.says("+OK\r\n+OK\r\n+OK\r\n+OK\r\n%s", last)
			s.got("+HELD\r\n+HELD\r\n")
		})
	}
}

// A server far away has no backlog with a few calls in flight.
func TestNothingIsHeldBackFromAServerFarAway(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, a *asker) {
		s.begin(a)
		far := a.put("+FAR\r\n")
		s.got("+FAR\r\n")
		time.Sleep(time.Millisecond)
		s.says("+OK\r\n")
		<-far
		for range 40 {
			a.put("+QUICK\r\n")
			s.got("+QUICK\r\n")
		}
	})
}

// Calls that are held back are not lost with the connection: they were not sent.
func TestHeldBackCallsSurviveTheConnection(t *testing.T) {
	inBacklog(t, func(t *testing.T, s *server, a *asker) {
		held := a.put("+HELD\r\n")
		a.unsent(t, 1)
		a.Pipe().Abandon(errors.New("broken"))
		synctest.Wait()
		s.got("+HELD\r\n")
		s.says("+OK\r\n")
		if said := <-held; said != "OK" || a.lost != 4 {
			t.Errorf("got %q, and %d calls were lost, want OK and 4", said, a.lost)
		}
	})
}

// After a slow answer, calls are not sent whose answers would come too late. One is sent all the same
// while none is in flight: nothing else can show that the server is quick again.
func TestACallFollowsASlowAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, a *asker) {
		a.timeout = time.Second
		s.begin(a)
		slow := a.put("+SLOW\r\n")
		s.got("+SLOW\r\n")
		time.Sleep(900 * time.Millisecond)
		s.says("+OK\r\n")
		<-slow
		a.Mu.Lock()
		a.until = time.Now().Add(time.Second)
		a.Mu.Unlock()
		quick := a.put("+QUICK\r\n")
		synctest.Wait()
		select {
		case said := <-quick:
			t.Fatalf("the call after the slow answer was not sent: %s", said)
		default:
		}
		s.got("+QUICK\r\n")
		if said := <-a.put("+LATE\r\n"); said != ErrLate.Error() {
			t.Errorf("the call beside it got %q, want %q", said, ErrLate)
		}
		s.says("+OK\r\n")
		if said := <-quick; said != "OK" {
			t.Errorf("the call after the slow answer got %q, want OK", said)
		}
	})
}
