package conn

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// server is the other end of the connections of an asker.
type server struct {
	t       *testing.T
	dials   int
	refuses bool
	conn    net.Conn
	in      *bufio.Reader
}

func (s *server) dial() (net.Conn, error) {
	if s.dials++; s.refuses {
		return nil, errors.New("refused")
	}
	near, far := net.Pipe()
	s.conn, s.in = far, bufio.NewReader(far)
	return near, nil
}

// got requires that the server receives want.
func (s *server) got(want string) {
	s.t.Helper()
	for l := range strings.Lines(want) {
		if got, err := s.in.ReadString('\n'); err != nil || got != l {
			s.t.Errorf("the server got %q (%v), want %q", got, err, l)
		}
	}
}

func (s *server) says(format string, args ...any) { fmt.Fprintf(s.conn, format, args...) }

// begin makes a send one question and answers it, so that a is connected.
func (s *server) begin(a *asker) {
	s.t.Helper()
	first := a.put("+FIRST\r\n")
	synctest.Wait()
	s.got("+FIRST\r\n")
	s.says("+OK\r\n")
	if said := <-first; said != "OK" {
		s.t.Fatalf("the first call got %q, want OK", said)
	}
}

func inBubble(t *testing.T, f func(t *testing.T, s *server, a *asker)) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t}
		f(t, s, newAsker(t, s.dial))
	})
}

// While answers come, even late ones, the connection stays: what the server has yet to answer would
// only have to be sent again.
func TestLateAnswersKeepTheConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, a *asker) {
		s.begin(a)
		a.timeout = time.Second
		one, two := a.put("+ONE\r\n"), a.put("+TWO\r\n")
		s.got("+ONE\r\n+TWO\r\n")
		time.Sleep(time.Second / 2)
		s.says("+1\r\n")
		<-one
		time.Sleep(time.Second * 4 / 5)
		s.says("+2\r\n")
		if said := <-two; said != "2" || s.dials != 1 {
			t.Errorf("got %q over %d connections, want 2 over the first", said, s.dials)
		}
	})
}

// Calls are written without waiting for answers. If none comes for as long as a call may take, that
// ends the connection: the calls in flight may have been executed. The next call goes over another
// connection.
func TestSilenceEndsTheConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, a *asker) {
		s.begin(a)
		a.timeout = time.Second
		start := time.Now()
		one, two := a.put("+ONE\r\n"), a.put("+TWO\r\n")
		s.got("+ONE\r\n+TWO\r\n")
		time.Sleep(time.Second / 2)
		s.says("+1\r\n")
		if said := <-one; said != "1" {
			t.Errorf("got %q, want %q", said, "1")
		}
		if said := <-two; said != errLost.Error() || time.Since(start) != 3*time.Second/2 || a.lost != 1 {
			t.Errorf("got %q after %v, and %d calls were lost, want %q after 1.5s, and 1", said, time.Since(start), a.lost, errLost)
		}
		three := a.put("+THREE\r\n")
		synctest.Wait()
		s.got("+THREE\r\n")
		s.says("+3\r\n")
		if said := <-three; said != "3" || s.dials != 2 {
			t.Errorf("got %q after %d connections, want 3 after 2", said, s.dials)
		}
	})
}

// A server that is down refuses calls until the pause is over, and then is tried again.
func TestDownServerIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, a *asker) {
		s.refuses = true
		for range 2 {
			if said := <-a.put("+A\r\n"); said != "refused" || s.dials != 1 {
				t.Errorf("got %q after %d attempts to connect, want refused after 1", said, s.dials)
			}
		}
		s.refuses = false
		time.Sleep(firstRetry)
		s.begin(a)
	})
}

// A connection that was not used for a while is tested before a call is risked on it.
func TestIdleConnectionIsTestedFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, a *asker) {
		s.begin(a)
		time.Sleep(2 * maxIdle)
		said := a.put("+A\r\n")
		s.got("+PROBE\r\n")
		s.conn.Close() // the call was not sent
		synctest.Wait()
		s.got("+A\r\n")
		s.says("+OK\r\n")
		if said := <-said; said != "OK" || s.dials != 2 {
			t.Errorf("got %q after %d connections, want OK after 2", said, s.dials)
		}
	})
}

// A call that has to be sent once more waits until all that is in flight is answered, and
// goes before calls that were enqueued later.
func TestAgainKeepsTheOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, a *asker) {
		s.begin(a)
		one, two := a.put("+ONE\r\n"), a.put("+TWO\r\n")
		s.got("+ONE\r\n+TWO\r\n")
		s.says("+AGAIN\r\n")
		synctest.Wait()
		three := a.put("+THREE\r\n")
		synctest.Wait()
		s.says("+2\r\n")
		s.got("+ONE\r\n+THREE\r\n")
		s.says("+1\r\n+3\r\n")
		if got := <-one + <-two + <-three; got != "123" {
			t.Errorf("the replies are %s, want 123", got)
		}
	})
}

// If a reply ends the connection, its call was not executed, and those after it may have
// been.
func TestReplyCanEndTheConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, a *asker) {
		s.begin(a)
		one, two := a.put("+ONE\r\n"), a.put("+TWO\r\n")
		s.got("+ONE\r\n+TWO\r\n")
		s.says("+PROMOTED\r\n")
		if one, two := <-one, <-two; one != errUnsent.Error() || two != errLost.Error() || a.lost != 2 {
			t.Errorf("got %q and %q, and %d calls were lost, want %q and %q, and 2", one, two, a.lost, errUnsent, errLost)
		}
	})
}

// A connection that is replaced answers what was sent, and nothing more is sent over it.
func TestReplaceLosesNoAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, a *asker) {
		s.begin(a)
		one := a.put("+ONE\r\n")
		s.got("+ONE\r\n")
		a.Pipe().Replace(errors.New("outdated"))
		two := a.put("+TWO\r\n")
		synctest.Wait()
		s.says("+1\r\n")
		if said := <-one; said != "1" {
			t.Errorf("got %q, want %q", said, "1")
		}
		synctest.Wait()
		s.got("+TWO\r\n")
		s.says("+2\r\n")
		if said := <-two; said != "2" || s.dials != 2 {
			t.Errorf("got %q after %d connections, want 2 after 2", said, s.dials)
		}
	})
}

// Pushes arrive in order with the answers. A reply without a request ends the
// connection.
func TestPushesAndUnaskedReplies(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, a *asker) {
		s.begin(a)
		one := a.put("+ONE\r\n")
		s.got("+ONE\r\n")
		s.says(">1\r\n+hello\r\n+1\r\n")
		if pushed, said := <-a.pushes, <-one; pushed != "hello" || said != "1" {
			t.Errorf("pushed %q, and replied %q, want hello and 1", pushed, said)
		}
		s.says("+2\r\n")
		synctest.Wait()
		if a.Pipe() != nil {
			t.Error("the connection is still used after an unasked reply")
		}
	})
}

// Upkeep is done while nothing is asked for, when it is due.
func TestIdleConnectionIsKeptUp(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, a *asker) {
		a.due = time.Now().Add(time.Minute)
		s.begin(a)
		time.Sleep(10*time.Minute + time.Second)
		a.Mu.Lock()
		defer a.Mu.Unlock()
		if a.upkeep != 10 {
			t.Errorf("upkeep was done %d times in 10 minutes, want 10", a.upkeep)
		}
	})
}

// A call in flight whose answer is doubted counts as lost at once, and a late answer
// does no harm. A call that comes after the Peer is closed is refused.
func TestDoubtAndClose(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, a *asker) {
		s.begin(a)
		one := a.put("+ONE\r\n")
		s.got("+ONE\r\n")
		if left := a.Pipe().Doubt(time.Now(), time.Second, time.Hour); left != time.Second {
			t.Errorf("to be doubted in %v, want 1s", left)
		}
		time.Sleep(time.Second)
		a.Pipe().Doubt(time.Now(), time.Second, time.Hour)
		if said := <-one; said != errLost.Error() {
			t.Errorf("got %q, want %q", said, errLost.Error())
		}
		s.says("+1\r\n")
		a.Close(net.ErrClosed)
		if said := <-a.put("+TWO\r\n"); said != net.ErrClosed.Error() {
			t.Errorf("got %q, want %q", said, net.ErrClosed.Error())
		}
	})
}

// Handing calls on allocates nothing.
func TestCallsAllocateNothing(t *testing.T) {
	near, far := net.Pipe()
	go func() {
		buf, ok := make([]byte, 64), []byte("+OK\r\n")
		for {
			if _, err := far.Read(buf); err != nil {
				return
			}
			far.Write(ok)
		}
	}()
	defer far.Close()
	a := newAsker(t, func() (net.Conn, error) { return near, nil })
	answered := make(chan struct{}, 1)
	c := ask{[]byte("+A\r\n"), func(resp.Value, error) { answered <- struct{}{} }}
	n := testing.AllocsPerRun(1000, func() {
		a.do(c, false)
		<-answered
	})
	if n >= 1 {
		t.Errorf("%v allocations for each call, want none", n)
	}
}
