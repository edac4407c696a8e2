package conn

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestCongestion(t *testing.T) {
	var b congestion
	for _, c := range []struct {
		took time.Duration
		want bool
	}{{4, false}, {1, false}, {3, false}, {4, true}, {3, false}, {9, true}, {1, false}} {
		if b.answered(c.took); b.exists() != c.want {
			t.Errorf("after an answer in %d the backlog is %v, want %v", c.took, b.exists(), c.want)
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

// inBacklog calls f with a server whose quickest answer took a millisecond, and the last one
// three times as long and a little more. Four calls are in flight, of which the last was sent at once all the same.
func inBacklog(t *testing.T, f func(t *testing.T, s *server, a *asker)) {
	inBubble(t, func(t *testing.T, s *server, a *asker) {
		s.begin(a)
		quick := a.put("+QUICK\r\n")
		s.got("+QUICK\r\n")
		time.Sleep(time.Millisecond)
		s.says("+OK\r\n")
		<-quick
		slow := a.put("+SLOW\r\n")
		for range 3 {
			a.put("+MORE\r\n")
		}
		s.got("+SLOW\r\n+MORE\r\n+MORE\r\n+MORE\r\n")
		time.Sleep(3*time.Millisecond + 1)
		s.says("+OK\r\n")
		<-slow
		a.put("+4\r\n")
		s.got("+4\r\n")
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
		time.Sleep(4 * time.Millisecond)
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
			time.Sleep(4 * time.Millisecond)
			a.unsent(t, 2)
			s.says("+OK\r\n+OK\r\n+OK\r\n+OK\r\n%s", last)
			s.got("+HELD\r\n+HELD\r\n")
		})
	}
}

// A server that answers as quickly as it can has no backlog, however far away it is.
func TestNothingIsHeldBackWithoutABacklog(t *testing.T) {
	inBacklog(t, func(t *testing.T, s *server, a *asker) {
		a.put("+HELD\r\n")
		a.unsent(t, 1)
		s.says("+OK\r\n+OK\r\n+OK\r\n+OK\r\n")
		s.got("+HELD\r\n")
		for range 5 {
			time.Sleep(time.Millisecond)
			s.says("+OK\r\n")
			a.put("+QUICK\r\n")
			s.got("+QUICK\r\n")
		}
		for range 10 {
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
