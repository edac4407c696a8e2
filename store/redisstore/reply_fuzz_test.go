package redisstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// FuzzReply makes a server answer every script with the same reply. The store never panics,
// never takes a reply that it cannot decode for a grant, and its errors can be printed.
func FuzzReply(f *testing.F) {
	for _, reply := range []string{
		// replies of the scripts
		"*2\r\n:1\r\n$16\r\n1790000000123456\r\n",
		"*1\r\n:1\r\n",
		"*1\r\n:2\r\n",
		"*3\r\n:0\r\n$11\r\nowner {\"a\":}\r\n:29000\r\n",
		"*3\r\n:0\r\n$0\r\n\r\n:-2\r\n",
		"*2\r\n:1\r\n$1\r\n0\r\n",
		"*4\r\n:0\r\n$3\r\nann\r\n:-1\r\n$3\r\n123\r\n",
		"*3\r\n:1\r\n$16\r\n1790000000123456\r\n:1\r\n",
		"*5\r\n:0\r\n$3\r\nann\r\n:29000\r\n:3\r\n:1\r\n",
		"*5\r\n:0\r\n$3\r\nann\r\n:29000\r\n:-3\r\n$1\r\n1\r\n",
		"*5\r\n:0\r\n$3\r\nann\r\n:29000\r\n:9223372036854775807\r\n:0\r\n",
		"*7\r\n:0\r\n$3\r\nann\r\n:29000\r\n$1\r\n7\r\n$1\r\n0\r\n$0\r\n\r\n*2\r\n$6\r\nbob {}\r\n:5\r\n",
		"*5\r\n:1\r\n$1\r\n7\r\n$1\r\n0\r\n$0\r\n\r\n*3\r\n$6\r\nbob {}\r\n:-5\r\n:1\r\n",
		"*5\r\n*3\r\n:1\r\n$1\r\n7\r\n$1\r\n0\r\n:1\r\n*3\r\n:0\r\n$0\r\n\r\n:-2\r\n:2\r\n-WRONGTYPE no\r\n",
		"*3\r\n*2\r\n:4\r\n$3\r\na:1\r\n:1\r\n*3\r\n:0\r\n$3\r\nann\r\n:29000\r\n",
		// replies to a release with a place for the next wait
		"*2\r\n*1\r\n:1\r\n*7\r\n:0\r\n$6\r\nbob {}\r\n:29000\r\n:1\r\n:0\r\n$10\r\n1790000000\r\n$1\r\n5\r\n",
		"*2\r\n*3\r\n:0\r\n$6\r\nann {}\r\n:29000\r\n*7\r\n:0\r\n$6\r\nann {}\r\n:29000\r\n:3\r\n:1\r\n$10\r\n1790000000\r\n$1\r\n5\r\n",
		"*2\r\n*1\r\n:1\r\n*7\r\n:0\r\n$0\r\n\r\n:-2\r\n:0\r\n:0\r\n$10\r\n1790000000\r\n$1\r\n5\r\n",
		"*2\r\n*3\r\n:0\r\n$0\r\n\r\n:-2\r\n*1\r\n:2\r\n",
		"*2\r\n*1\r\n:1\r\n*0\r\n",
		// replies that such a release cannot have
		"*2\r\n*1\r\n:1\r\n*2\r\n:1\r\n$16\r\n1790000000123456\r\n", "*2\r\n*1\r\n:1\r\n*2\r\n:1\r\n$1\r\n0\r\n", "*2\r\n*1\r\n:1\r\n*1\r\n:1\r\n",
		"*2\r\n*1\r\n:1\r\n-ERR no\r\n", "*2\r\n-ERR no\r\n*1\r\n:1\r\n", "*2\r\n:1\r\n*1\r\n:1\r\n", "*1\r\n*1\r\n:1\r\n", "*2\r\n*0\r\n*0\r\n",
		"*3\r\n*1\r\n:1\r\n*7\r\n:0\r\n$6\r\nbob {}\r\n:29000\r\n:1\r\n:0\r\n$10\r\n1790000000\r\n$1\r\n5\r\n:1\r\n",
		"*2\r\n*2\r\n:4\r\n$3\r\na:1\r\n*2\r\n:4\r\n$3\r\na:1\r\n", "*2\r\n*1\r\n:1\r\n*3\r\n:3\r\n:1\r\n$1\r\nx\r\n",
		"*2\r\n*1\r\n:1\r\n*5\r\n:0\r\n$6\r\nbob {}\r\n:29000\r\n:-1\r\n:0\r\n",
		// replies that no script can have
		"*3\r\n*1\r\n:1\r\n:3\r\n*1\r\n:1\r\n", "*3\r\n*1\r\n:1\r\n:0\r\n*1\r\n:1\r\n", "*2\r\n*1\r\n:1\r\n:1\r\n",
		"*5\r\n*1\r\n:1\r\n:1\r\n*1\r\n:1\r\n:1\r\n*1\r\n:1\r\n", "*1\r\n*0\r\n", "*1\r\n*1\r\n*1\r\n:1\r\n",
		"*2\r\n:4\r\n$1\r\n\n\r\n", "*2\r\n:4\r\n$3\r\n\x1b>\x7f\r\n", "!3\r\na\nb\r\n",
		"*2\r\n:1\r\n:0\r\n",
		"*2\r\n:1\r\n$21\r\n-18446744073709551615\r\n",
		"*2\r\n:1\r\n$20\r\n18446744073709551615\r\n",
		"*2\r\n+1\r\n,1.79e+15\r\n",
		"*3\r\n:0\r\n$1\r\nx\r\n:9223372036854775807\r\n",
		"*3\r\n:0\r\n$1\r\nx\r\n:18446744073710\r\n",
		"*3\r\n:0\r\n$4\r\n\x1b[2J\r\n:5\r\n",
		"*4\r\n:0\r\n$1\r\nx\r\n:5\r\n$-1\r\n",
		"*0\r\n", "*-1\r\n", "_\r\n", "+OK\r\n", ":1\r\n", "#t\r\n", "~1\r\n:1\r\n",
		"%1\r\n:1\r\n:5\r\n", "|1\r\n+a\r\n+b\r\n*1\r\n:1\r\n", "*2\r\n*1\r\n:1\r\n(5\r\n",
		"-ERR no\r\n", "-NOSCRIPT no\r\n", "-LOADING\r\n", "-WRONGTYPE\r\n", "!3\r\nOOM\r\n",
		"-MOVED 1 127.0.0.1:1\r\n", "-\x1b]0;x\x07\r\n", "*2\r\n:1\r\n-ERR in it\r\n",
	} {
		f.Add(reply)
	}
	server := &parrot{reply: "+OK\r\n"}
	addr := server.listen(f)
	s, err := redisstore.Open(context.Background(), "redis://"+addr, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })

	f.Fuzz(func(t *testing.T, reply string) {
		reply, _ = wellFormed(reply, 0)
		server.say(reply)
		ctx := context.Background()
		r := store.Lease{Name: "stock", Owner: store.NewOwner(), Meta: "{}", TTL: 30 * time.Second}
		grant, err := s.Acquire(ctx, store.AcquireRequest{Lease: r})
		if err == nil && grant.Token == 0 {
			t.Errorf("%q is a grant with token 0", reply)
		}
		// In a list of steps, a grant of the proposed token does not name it.
		lead := time.Until(time.UnixMicro(int64(min(grant.Token, math.MaxInt64))))
		if err == nil && !strings.Contains(reply, grant.Token.String()) && lead.Abs() > time.Minute {
			t.Errorf("%q is a grant with token %v", reply, grant.Token)
		}
		printable(t, reply, err)
		var busy *store.BusyError
		if errors.As(err, &busy) && (busy.Holder.Owner == "" || busy.ExpiresIn == 0) {
			t.Errorf("%q: busy without an owner or a TTL: %+v", reply, busy)
		}
		printable(t, reply, s.Renew(ctx, []store.Lease{r})[0])
		for _, err := range s.Renew(ctx, []store.Lease{r, r, r}) {
			printable(t, reply, err)
		}
		printable(t, reply, s.Release(ctx, store.ReleaseRequest{Lease: r}))
		state, err := s.Inspect(ctx, "stock")
		printable(t, reply, err)
		if err == nil && state.Held != (state.Holder.Owner != "") {
			t.Errorf("%q: inspect: %+v, want a holder only of a held lock", reply, state)
		}
		for _, p := range state.Queue {
			if p.Holder.Owner == "" || p.ExpiresIn < 0 {
				t.Errorf("%q: inspect has the waiter %+v, want an owner and a TTL", reply, p)
			}
		}
		if _, err := s.List(ctx, ""); err != nil {
			printable(t, reply, err)
		}
		rejoin(t, s, r, reply)
	})
}

// released matches the begin of a reply to a release with a place: two answers, the first of
// which is a yes.
var released = regexp.MustCompile(`^([*~]2|%1)\r\n[*~%][1-9]\d*\r\n(:1|#t)\r\n`)

// rejoin releases r with a place for the next wait, and then waits for the lock or releases
// the place.
func rejoin(t *testing.T, s *store.Store, r store.Lease, reply string) {
	next := store.WaitRequest{Lease: r}
	next.Owner = store.NewOwnerAt(time.Now())
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	queued, err := s.ReleaseAndRejoin(ctx, store.ReleaseRequest{Lease: r}, next)
	printable(t, reply, err)
	if err == nil && !strings.Contains(reply, "|") && !released.MatchString(reply) {
		t.Errorf("%q is taken for a release", reply)
	}
	if err != nil && queued {
		t.Errorf("%q: a rejoin has a place and the error %v", reply, err)
	}
	if ctx.Err() != nil {
		t.Errorf("%q: the rejoin does not end", reply)
	}
	if !queued {
		return
	}
	if len(reply)%2 == 0 {
		brief, done := context.WithTimeout(ctx, time.Millisecond)
		defer done()
		g, err := s.Wait(brief, next, func(err error) { printable(t, reply, err) })
		printable(t, reply, err)
		switch {
		case err == nil && (g.Token == 0 || !strings.Contains(reply, g.Token.String())):
			t.Errorf("%q is a grant with token %v", reply, g.Token)
		case err == nil:
			printable(t, reply, s.Release(ctx, store.ReleaseRequest{Lease: next.Lease}))
		}
	} else if err := s.Release(ctx, store.ReleaseRequest{Lease: next.Lease}); !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("%q: release of the place: %v, want %v", reply, err, store.ErrNotHeld)
	}
	if ctx.Err() != nil {
		t.Errorf("%q: the call after the rejoin does not end", reply)
	}
}

// A key of another client may have a TTL beyond the range of a Duration. It is shown with a
// very long TTL, not with a short one or none.
func TestLongestTTL(t *testing.T) {
	const px = "18446744073710" // milliseconds; in nanoseconds, more than 2^64
	server := redistest.Start(t)
	server.Text(t, "SET", "stock", "x", "PX", px)
	s := open(t, []string{server.Addr()}, nil)
	_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: store.Lease{Name: "stock", Owner: store.NewOwner(), TTL: time.Second}})
	var busy *store.BusyError
	if !errors.As(err, &busy) || busy.ExpiresIn < 100*365*24*time.Hour {
		t.Errorf("acquire: %v, want a *BusyError that ends in more than 100 years", err)
	}
	st, err := s.Inspect(t.Context(), "stock")
	if err != nil || st.ExpiresIn < 100*365*24*time.Hour {
		t.Errorf("inspect: %+v, %v, want an end in more than 100 years", st, err)
	}
}

// FuzzRawReply is FuzzReply with any bytes, also those that are no reply.
func FuzzRawReply(f *testing.F) {
	for _, reply := range []string{
		"$-2\r\n", "*-5\r\n", "%-1\r\n", "$99999999999999\r\n", "*100000000000\r\n", "_ab$-2\r\n", "$12\n:", "#xyz*-2\r\n",
		"*2\r\n:1\r\n$3\r\n123\r\n*2\r\n:1\r\n$3\r\n124\r\n", "+OK\r\n+OK\r\n", "HTTP/1.1 400 Bad\r\n\r\n",
		">2\r\n+a\r\n+b\r\n", ">0\r\n+OK\r\n", "$?\r\n;-4\r\n", "*?\r\n:1\r\n.\r\n", "|1\r\n+a\r\n+b\r\n",
		strings.Repeat("*1\r\n", 100) + ":1\r\n", "\n", "\x00",
	} {
		f.Add(reply)
	}
	server := &parrot{reply: "+OK\r\n"}
	addr := server.listen(f)
	f.Fuzz(func(t *testing.T, reply string) {
		server.say("+OK\r\n")
		ctx := context.Background()
		s, err := redisstore.Open(ctx, "redis://"+addr+"?node_timeout=5ms", nil)
		if err != nil {
			t.Fatal(err) // the server answers OK to every command so far
		}
		defer s.Close()
		server.say(reply)
		r := store.Lease{Name: "stock", Owner: store.NewOwner(), Meta: "{}", TTL: 30 * time.Second}
		if grant, err := s.Acquire(ctx, store.AcquireRequest{Lease: r}); err == nil && grant.Token == 0 {
			t.Errorf("%q is a grant with token 0", reply)
		}
		s.Renew(ctx, []store.Lease{r})
		s.Release(ctx, store.ReleaseRequest{Lease: r})
	})
}

// printable checks errors that name a holder or a reply. The text of a server's own error is
// passed on unchanged.
func printable(t *testing.T, reply string, err error) {
	t.Helper()
	if err == nil || strings.ContainsAny(reply, "-!") {
		return
	}
	if strings.ContainsFunc(err.Error(), unicode.IsControl) {
		t.Errorf("%q: the error has control characters: %q", reply, err)
	}
}

// wellFormed makes a whole RESP value of the beginning of text, and returns the rest. It
// corrects counts and lengths, and keeps the kinds, contents and nesting of values.
func wellFormed(text string, depth int) (value, rest string) {
	if text == "" || depth > 8 {
		return "_\r\n", ""
	}
	kind := text[0]
	line, rest, _ := strings.Cut(text[1:], "\n")
	line = strings.TrimRight(line, "\r")
	n, err := strconv.Atoi(line)
	if err != nil {
		n = 0
	}
	switch kind {
	case '$', '!', '=':
		if n < 0 {
			return "$-1\r\n", rest
		}
		n = min(n, len(rest))
		return fmt.Sprintf("%c%d\r\n%s\r\n", kind, n, rest[:n]), strings.TrimPrefix(rest[n:], "\r\n")
	case ':':
		return fmt.Sprintf(":%d\r\n", n), rest
	case '#':
		return map[bool]string{true: "#t\r\n", false: "#f\r\n"}[line == "t"], rest
	case '+', '-', ',', '(':
		return string(kind) + line + "\r\n", rest
	case '*', '~', '%', '|':
		if n < 0 && kind == '*' {
			return "*-1\r\n", rest
		}
		n = max(0, min(n, 8))
		each := n
		if kind == '%' || kind == '|' {
			each = 2 * n
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%c%d\r\n", kind, n)
		for range each {
			var v string
			v, rest = wellFormed(rest, depth+1)
			b.WriteString(v)
		}
		if kind == '|' { // it belongs to the value after it
			var v string
			v, rest = wellFormed(rest, depth+1)
			b.WriteString(v)
		}
		return b.String(), rest
	}
	return "_\r\n", rest
}

// parrot is a server that answers the commands of a new connection, and all others with the
// same reply.
type parrot struct {
	mu    sync.Mutex
	reply string
	scan  func() string // returns the reply to SCAN, if not nil
	left  int           // connections that have ended
}

// gone returns how many connections have ended.
func (p *parrot) gone() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

func (p *parrot) say(reply string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reply = reply
}

// listen starts the server; it ends with the test, when its clients have gone.
func (p *parrot) listen(tb testing.TB) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.serve(conn) })
		}
	})
	tb.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

func (p *parrot) serve(conn net.Conn) {
	defer func() {
		conn.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.left++
	}()
	r := bufio.NewReader(conn)
	for {
		command, err := readCommand(r)
		if err != nil {
			return
		}
		reply := "+OK\r\n"
		switch command[0] {
		case "HELLO":
			reply = "%1\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n"
		case "PING":
			reply = "+PONG\r\n"
		case "INFO":
			reply = "$0\r\n\r\n"
		case "EVAL", "EVALSHA", "SCAN":
			p.mu.Lock()
			if reply = p.reply; command[0] == "SCAN" && p.scan != nil {
				reply = p.scan()
			}
			p.mu.Unlock()
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}

func readCommand(r *bufio.Reader) (words []string, err error) {
	count, err := readNumber(r)
	for range count {
		var n int
		if n, err = readNumber(r); err != nil {
			break
		}
		word := make([]byte, n+2)
		if _, err = io.ReadFull(r, word); err != nil {
			break
		}
		words = append(words, string(word[:n]))
	}
	return words, err
}

// readNumber reads a line such as *3 or $10.
func readNumber(r *bufio.Reader) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}
