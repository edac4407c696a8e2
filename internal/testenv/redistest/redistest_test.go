package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/internal/testenv/localredis"
)

func TestMain(m *testing.M) {
	if os.Getenv(orphanEnv) != "" {
		launchAndWaitForDeath()
	}
	goleak.VerifyTestMain(m)
}

func TestStartAnswersAtItsAddress(t *testing.T) {
	s := Start(t)
	if got := s.Text(t, "PING"); got != "PONG" {
		t.Errorf("PING = %q, want PONG", got)
	}
	if got := s.Text(t, "CONFIG", "GET", "bind"); got != "bind\n127.0.0.1" {
		t.Errorf("bind = %q, want loopback only", got)
	}
	if want := "redis://" + s.Addr(); s.URL() != want {
		t.Errorf("URL = %q, want %q", s.URL(), want)
	}
}

func TestStartNServersAreIndependent(t *testing.T) {
	servers := StartN(t, 3)
	for i, s := range servers {
		s.Text(t, "SET", "who", fmt.Sprint(i))
	}
	for i, s := range servers {
		if got := s.Text(t, "GET", "who"); got != fmt.Sprint(i) {
			t.Errorf("server %d has the value %q, want its own, %d", i, got, i)
		}
	}
}

func TestPassword(t *testing.T) {
	s := Start(t, "--requirepass", "s p:a@c/e")
	if got := s.Text(t, "PING"); got != "PONG" {
		t.Errorf("PING = %q, want PONG", got)
	}
	if want := "redis://:s%20p%3Aa%40c%2Fe@" + s.Addr(); s.URL() != want {
		t.Errorf("URL = %q, want %q", s.URL(), want)
	}
	_, err := localredis.Do(t.Context(), s.Addr(), "PING")
	if re, ok := errors.AsType[ReplyError](err); !ok || !strings.HasPrefix(string(re), "NOAUTH") {
		t.Errorf("PING without the password: %v, want NOAUTH", err)
	}
}

func TestServerThatRefusesItsDefaultUser(t *testing.T) {
	s := Start(t, "--user", "default", "off")
	_, err := s.Do(t.Context(), "PING")
	if _, ok := errors.AsType[ReplyError](err); !ok {
		t.Errorf("PING: %v, want an error reply", err)
	}
}

func TestRepliesOfEveryType(t *testing.T) {
	s := Start(t)
	s.Text(t, "RPUSH", "list", "a", "b")
	for _, c := range []struct{ args, want string }{
		{"INCR n", "1"},
		{"GET nothing", "(nil)"},
		{"LRANGE list 0 -1", "a\nb"},
		{"LRANGE none 0 -1", ""},
		{"EVAL return{1,{2,'x'},false,redis.error_reply('E1')} 0", "1\n2\nx\n(nil)\nERR E1"},
	} {
		if got := s.Text(t, strings.Fields(c.args)...); got != c.want {
			t.Errorf("%s = %q, want %q", c.args, got, c.want)
		}
	}
	if got := strings.Join(s.Keys(t), " "); got != "list n" {
		t.Errorf("keys = %q, want \"list n\"", got)
	}
	_, err := s.Do(t.Context(), "GET", "list")
	if re, ok := errors.AsType[ReplyError](err); !ok || !strings.HasPrefix(string(re), "WRONGTYPE") {
		t.Errorf("GET of a list: %v, want WRONGTYPE", err)
	}
}

func TestKillRefusesConnectionsAndRestartLosesData(t *testing.T) {
	s := Start(t)
	s.Text(t, "SET", "k", "v")
	pid := s.PID()
	s.Kill()
	s.Kill()
	if conn, err := net.Dial("tcp", s.Addr()); err == nil {
		conn.Close()
		t.Error("the port of a killed server accepts connections")
	}
	if s.PID() != 0 {
		t.Errorf("PID of a killed server = %d, want 0", s.PID())
	}
	addr := s.Addr()
	if s.Restart() != nil {
		return // the error has failed the test
	}
	if s.Addr() != addr {
		t.Errorf("address %s after the restart, want %s", s.Addr(), addr)
	}
	if s.PID() == pid {
		t.Errorf("process %d after the restart, want a new one", pid)
	}
	if got := s.Keys(t); len(got) != 0 {
		t.Errorf("keys after the restart: %q, want none", got)
	}
}

func TestRestartKeepsDataThatIsSynced(t *testing.T) {
	s := Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s.Text(t, "SET", "k", "v")
	if s.Restart() != nil {
		return
	}
	if got := s.Text(t, "GET", "k"); got != "v" {
		t.Errorf("GET = %q, want the value from before the restart", got)
	}
}

func TestStopLetsTheServerSave(t *testing.T) {
	s := Start(t, "--save", "3600 1")
	s.Text(t, "SET", "k", "v")
	if s.Freeze() != nil { // Stop must thaw it
		return
	}
	if s.Stop() != nil {
		return
	}
	s.Stop() // a second Stop does nothing
	if s.Restart() != nil {
		return
	}
	if got := s.Text(t, "GET", "k"); got != "v" {
		t.Errorf("GET = %q, want the saved value", got)
	}
}

func TestFreezeAcceptsButDoesNotAnswer(t *testing.T) {
	s := Start(t)
	if s.Freeze() != nil {
		return
	}
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatalf("a frozen server's kernel does not accept: %v", err)
	}
	conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if v, err := s.Do(ctx, "PING"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("PING of a frozen server: %v, %v, want DeadlineExceeded", v, err)
	}
	if s.Thaw() != nil {
		return
	}
	if got := s.Text(t, "PING"); got != "PONG" {
		t.Errorf("PING after Thaw = %q, want PONG", got)
	}
}

func TestRestartLoadingReturnsWhileLoading(t *testing.T) {
	s := Start(t, "--save", "3600 1", "--rdbcompression", "no", "--key-load-delay", "20000", "--loading-process-events-interval-bytes", "1024")
	s.Text(t, "EVAL", "for i=1,300 do redis.call('SET','k'..i,string.rep('x',100)) end", "0")
	if s.Stop() != nil || s.RestartLoading() != nil {
		return
	}
	_, err := s.Do(t.Context(), "GET", "k1")
	if re, ok := errors.AsType[ReplyError](err); !ok || !strings.HasPrefix(string(re), "LOADING") {
		t.Errorf("GET right after the restart: %v, want LOADING", err)
	}
	s.Kill()
}

func TestRestartWaitsForItsPort(t *testing.T) {
	s := Start(t)
	s.Kill()
	l, err := net.Listen("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Restart() }()
	for !strings.Contains(s.Log(), "Address already in use") {
		if t.Context().Err() != nil {
			t.Fatal("the test ended before the server tried to use the port")
		}
		time.Sleep(5 * time.Millisecond)
	}
	l.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.Text(t, "PING")
}

// recorder stands in for the test that started a server.
type recorder struct {
	testing.TB
	errs []any
}

func (r *recorder) Error(args ...any) { r.errs = append(r.errs, args...) }

func TestTroubleFailsTheTest(t *testing.T) {
	r := &recorder{TB: t}
	s := Start(r)
	s.Kill()
	if err := s.Freeze(); !errors.Is(err, localredis.ErrDown) || len(r.errs) != 1 {
		t.Errorf("Freeze while down: %v, want ErrDown; errors of the test: %v, want one", err, r.errs)
	}
}
